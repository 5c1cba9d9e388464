"""Keeps secrets out of everything that is stored, judged or shown.

`secret_patterns` recognises keys by their form. `redaction` removes keys and configured secrets from responses and
verdicts, and refuses them in names that are logged. `addresses` shows URLs without secrets.
"""
