"""The parts of `scripts/write_reference.py`: one page each, out of the code."""
