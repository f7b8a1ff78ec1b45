"""The use cases: one module each, a typed request in, a typed result out, called by commands and screens alike."""
