"""Runs the command line of evaltrack, for `python -m evaltrack`."""

from evaltrack.cli import main

main()
