"""Linear models of texts: what they see of a text, how they are trained, and the files that they are kept in."""
