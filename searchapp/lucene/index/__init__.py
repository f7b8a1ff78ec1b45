"""The index: writing documents to files, and opening them.

mapping         fields of a create-index body, and their values in a document
index_settings  the canonical form of index settings
writer          writes a segment and its manifest
postings        inversion of tokens in bounded memory
segments        the merge policy for a changed collection
versions        the live version, and the lock of its builder
layout          the files of a version: manifest, digests, verification
arrays          `.npy` files verified by block, and term dictionaries
impacts         bounds of the postings' scores
documents       ids and sources in SQLite
reader          an index opened for searching

Functions that read files raise `CorruptIndex` (missing or altered) or `UnreadableFile`; those that write, `OSError`.
"""
