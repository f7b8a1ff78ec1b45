"""searchapp: a bench for ranked retrieval in the terminal."""

__version__ = "0.3.0"
