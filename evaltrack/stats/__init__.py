"""Computes intervals, significance tests and agreement from paired scores, counts and p-values."""
