"""A comparison as text, JSON, Markdown, JUnit and annotations."""
