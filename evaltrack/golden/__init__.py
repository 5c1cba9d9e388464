"""Golden sets: read, checked, hashed; and the corpus that their chunks are in."""
