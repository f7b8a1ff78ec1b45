"""The judgment log, judging sessions, agreement and exchange."""
