"""Golden sets of other tools: read into golden lines, and written from them; a file for each format."""
