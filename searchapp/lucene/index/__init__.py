"""The index: how documents become files, and how these are opened.

mapping     fields of a create-index body, and their values in a document
writer      documents in, a complete version out
inverter    tokens of a field to sorted runs, runs to postings, in bounded memory
merge       postings of an older version and of new documents in one
segments    changes beside a large version: which documents are new, which are dead
versions    which version serves, its parts, the lock, the code that made it
layout      the files of a version: manifest, digests, damage, verification
arrays      numbers in `.npy` files, verified by block
terms       the dictionary of terms, and their positions
impacts     how much each posting can add to a score, in one byte
documents   ids and sources in SQLite
reader      a version opened for searching, and its fields"""
