"""One self-contained page for a run or a comparison: no request leaves it, and foreign text in it is only text."""
