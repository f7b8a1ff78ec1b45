"""What can be wrong with analysis settings.

UsageError
└── NotSupported   Elasticsearch has this piece, the embedded engine does not
DataError
└── BadSettings    Elasticsearch would reject the settings as well
"""

from __future__ import annotations

from searchapp.errors import DataError, UsageError


class NotSupported(UsageError):
    """A piece that the embedded engine can't run exactly as Elasticsearch does; `piece` names it."""

    def __init__(self, piece: str) -> None:
        self.piece = piece
        super().__init__(
            f"{piece} is not supported by the embedded engine; "
            "Elasticsearch supports it: use --engine elasticsearch"
        )


class BadSettings(DataError):
    """Analysis settings that make no sense to Elasticsearch either."""
