"""Candidate against baseline, question by question, with causes. Pure: it reads no store and prints nothing.

`engine` puts it together: `pairing` holds the common questions, `changes` those of which anything differs,
`differences` and `causes` say why, `culprits` what they have in common, `reruns` which of them count, `gate` holds the
rules and settings, and `verdict` applies them. `change` and `comparison` are the nouns, `ranking` the leaderboard.
"""
