"""A run as text, JSON and Markdown, and what it stores of itself."""
