"""The parts of `scripts/kill_loop.py`: a chain of kills, the loop of chains, and a disk that fills up."""
