"""Renders runs and comparisons as text, Markdown, JSON and HTML. Computes no results."""
