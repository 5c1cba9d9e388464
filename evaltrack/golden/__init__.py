"""Reads, checks, imports, reviews and selects golden sets, and reads the corpus that holds their chunks."""
