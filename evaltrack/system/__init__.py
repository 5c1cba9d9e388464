"""Hides differences between Linux, macOS and Windows, and handles private files.

Each function checks for the feature that it needs (`os.killpg`, `fcntl`), not for the name of a system. Its docstring
says what happens without that feature.
"""
