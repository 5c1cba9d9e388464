"""Handles processes, signals and files where Linux, macOS and Windows differ, private files, and retries.

Each function checks for the feature that it needs (`os.killpg`, `fcntl`), not for the name of a system. Its docstring
says what happens without that feature.
"""
