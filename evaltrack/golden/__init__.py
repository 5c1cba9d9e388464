"""Reads, checks, imports and reviews golden sets, selects questions, and reads the corpus that holds their chunks."""
