"""How the judgment log lies in SQLite: its tables, and how one of an earlier searchapp becomes one of this.

An earlier searchapp that has a log open while it is brought up to date goes on writing events: what it does not know
must do without it. So checksums are in a table of their own, and columns that were added later may be empty.

An index that holds the same events is one mirror, by whatever address it is reached, and has one row in `mirrors`.
Before format 7 it had one for each address: these rows stay, and count together. `places` says what an address last
led to.
"""

from __future__ import annotations

import sqlite3
from dataclasses import fields

from searchapp.errors import DataError
from searchapp.judging.events import Event

FORMAT = 7

COLUMNS = tuple(field.name for field in fields(Event))
TYPES = {"grade": "INTEGER", "rank": "INTEGER", "saw_others": "INTEGER"}
_LATER = {5: ("saw_others",)}
"""Columns that events were given later, by the format that has them first."""

_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    {", ".join(f"{name} {TYPES.get(name, 'TEXT NOT NULL')}" for name in COLUMNS)},
    UNIQUE (id)
) STRICT;
CREATE TABLE IF NOT EXISTS mirrors (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    address TEXT NOT NULL,
    identity TEXT NOT NULL,
    sent INTEGER NOT NULL DEFAULT 0,
    received INTEGER NOT NULL DEFAULT -1,
    UNIQUE (address, identity)
) STRICT;
CREATE TABLE IF NOT EXISTS places (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    address TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS arrivals (
    sequence INTEGER PRIMARY KEY,
    mirror INTEGER NOT NULL REFERENCES mirrors (number)
) STRICT;
CREATE TABLE IF NOT EXISTS sent_of_tasks (
    mirror INTEGER NOT NULL REFERENCES mirrors (number),
    task TEXT NOT NULL,
    up_to INTEGER NOT NULL,
    PRIMARY KEY (mirror, task)
) STRICT;
CREATE TABLE IF NOT EXISTS imports (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    task TEXT NOT NULL,
    file TEXT NOT NULL,
    format TEXT NOT NULL,
    events INTEGER NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS imported (
    sequence INTEGER PRIMARY KEY,
    import INTEGER NOT NULL REFERENCES imports (number)
) STRICT;
CREATE TABLE IF NOT EXISTS windows (
    id TEXT PRIMARY KEY,
    annotator TEXT NOT NULL,
    task TEXT NOT NULL,
    host TEXT NOT NULL,
    process INTEGER NOT NULL,
    opened REAL NOT NULL,
    beat REAL NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS checksums (
    sequence INTEGER PRIMARY KEY,
    checksum BLOB NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS head (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    events INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    checksum BLOB NOT NULL
) STRICT;
INSERT OR IGNORE INTO head VALUES (1, 0, 0, X'');
CREATE INDEX IF NOT EXISTS events_by_task ON events (task, sequence);
CREATE TRIGGER IF NOT EXISTS never_updated BEFORE UPDATE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never changed'); END;
CREATE TRIGGER IF NOT EXISTS never_deleted BEFORE DELETE ON events
    BEGIN SELECT RAISE(ABORT, 'events are never deleted'); END;
CREATE TRIGGER IF NOT EXISTS checksums_never_updated BEFORE UPDATE ON checksums
    BEGIN SELECT RAISE(ABORT, 'checksums are never changed'); END;
CREATE TRIGGER IF NOT EXISTS checksums_never_deleted BEFORE DELETE ON checksums
    BEGIN SELECT RAISE(ABORT, 'checksums are never deleted'); END;
PRAGMA user_version = {FORMAT};
"""


def version(database: sqlite3.Connection) -> int:
    """The format that a log has; 0 where nothing is made yet."""
    (found,) = database.execute("PRAGMA user_version").fetchone()
    return int(found)


def make(database: sqlite3.Connection, name: str) -> None:
    """Make the tables that are not there; within a transaction. `name` is that of the file, for errors.

    Raises:
        DataError: the file holds something else.
    """
    made_as = version(database)
    (tables,) = database.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if made_as == 0 and tables:
        raise DataError(f"{name} is a database, but not a judgment log: name another file")
    there = {row[1] for row in database.execute("PRAGMA table_info (events)")}
    for since, names in _LATER.items():
        for column in names if 0 < made_as < since else ():
            if column not in there:
                database.execute(f"ALTER TABLE events ADD COLUMN {column} {TYPES[column]}")
    for statement in _statements(_SCHEMA):
        database.execute(statement)


def _statements(script: str) -> list[str]:
    """The statements of a script; a trigger's own semicolons do not end it."""
    statements: list[str] = []
    rest = ""
    for piece in script.split(";"):
        rest += piece
        if sqlite3.complete_statement(rest + ";") and rest.strip():
            statements.append(rest)
            rest = ""
        elif rest.strip():
            rest += ";"
    return statements
