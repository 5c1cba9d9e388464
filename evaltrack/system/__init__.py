"""Handles processes and files where systems differ, makes private files, retries calls, and bounds Parquet files.

Each function checks for the feature that it needs (`os.killpg`, `fcntl`), not for the name of a system. Its docstring
says what happens without that feature.
"""
