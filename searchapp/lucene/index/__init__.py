"""The index: how documents become files, and how these are opened.

mapping     fields of a create-index body, and their values in a document
writer      new documents and merged segments in, a segment and its manifest out
inverter    tokens of a field to sorted runs, runs to postings, in bounded memory
merge       the live documents of a segment, as a merge takes them over
segments    what of an index a changed collection keeps, merges and adds: the merge policy
versions    which version serves, and the lock of who builds
layout      the files of a version: manifest, segments, digests, damage, verification
arrays      numbers in `.npy` files, verified by block
terms       the dictionary of terms, and their positions
impacts     how much each posting can add to a score, in one byte
documents   ids and sources in SQLite
reader      an index opened for searching: its segments and their fields"""
