"""The parts of `scripts/soak.py`: a target that fails, stores that fail, and what must come out."""
