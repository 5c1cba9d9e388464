"""Golden sets of other tools: their files as rows, and rows as checked golden lines."""
