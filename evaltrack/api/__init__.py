"""Holds the Python API, one module for each action of a user; the command line and the pages in `ui` call it."""
