"""Use cases: a typed request in, a typed result out, called by commands and screens alike."""
