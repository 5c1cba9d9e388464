"""Candidate against baseline, question by question, with causes. Pure: it reads no store and prints nothing.

`comparison` holds the nouns, `pairing` the common questions, `deltas` the metrics of both sides, `changes` and `causes`
the questions that changed and why, `gate` the rules; `engine` puts them together.
"""
