"""`python -m evaltrack` is `evaltrack`."""

from evaltrack.cli import main

main()
