"""`ctxexp split-words`: in which layer a word that is split into pieces meets the same word in one piece."""
