"""Renders runs, comparisons, leaderboards and judges as text, Markdown, JSON, JUnit XML and HTML."""
