"""Where the embedded engine keeps an index, and how it gets there.

layout      the names of files and folders, and what may be wrong with them
versions    which version serves: the lock, the pointer, clean-up
arrays      numbers in `.npy` files, written in pieces, read by memory map
terms       a sorted dictionary of byte strings that is searched without being loaded
term_blocks which absent terms Lucene takes for absent before it looks
packed      the tokens of a field in some documents as arrays, as other processes send them
inverter    the tokens of a field turned into sorted runs of postings, in bounded memory
merger      the runs of a field merged into its postings
comparison  which documents of a collection the version that serves has
small_part  what has changed, written beside the version that serves
in_parts    such a version in parts: what it consists of, and whether all of it is sound
carried     which documents a new version takes over from an older one
joined      postings of an older version and of new documents, in one
code_digest which code made a version: what another one made is not taken over
impacts     how much each posting can give to a score, in one byte
documents   ids and sources in SQLite
fields      the values of a field in, its files out
writer      documents in, a complete version out
columns     the numbers of a version, verified block by block
verified    which versions were verified whole
reader, field_reader   a version opened for searching, and its fields
part_reader a part of an index, with the statistics of the whole
known_ids, term_positions   ids of documents and positions of terms, as they are read
"""
