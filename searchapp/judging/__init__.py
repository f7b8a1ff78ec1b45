"""The judgment log: append-only events of annotators, the judgments that hold, sessions, agreement and exchange."""
