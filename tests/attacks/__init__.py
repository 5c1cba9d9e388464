"""Attacks that must fail: each was seen to succeed on the code before its defence."""
