"""Renders runs, comparisons, leaderboards and judges' agreement as text, Markdown, JSON, JUnit XML and HTML."""
