"""Computes intervals, tests and agreement from paired scores, counts and p-values, with pure functions."""
