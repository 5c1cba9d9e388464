"""What differs between Linux, macOS and Windows: processes, locks, owners, limits and command lines.

Each function looks for what it needs (`os.killpg`, `fcntl`), not for the name of a system, and says what it does where
that is missing. It stands beside the records because every room above them may use it.
"""
