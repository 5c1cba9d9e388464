"""Holds the actions of users (evaluate, compare, ...) and their helpers, for Python, the command line and pytest."""
