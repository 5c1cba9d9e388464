"""How far a number can be trusted: pure functions over paired scores, counts and p-values."""
