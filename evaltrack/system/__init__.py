"""What differs between Linux, macOS and Windows (processes, locks, owners, limits), and the files of the user alone.

Each function looks for what it needs (`os.killpg`, `fcntl`), not for the name of a system, and says what it does where
that is missing.
"""
