"""Holds the Python API, a module for each action; the command line and the server call it."""
