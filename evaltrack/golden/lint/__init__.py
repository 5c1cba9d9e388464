"""What is wrong with a golden set beyond single lines, one file for each family of checks; pure functions."""
