"""Golden sets: reads, checks and hashes them, and reads the corpus that holds their chunks."""
