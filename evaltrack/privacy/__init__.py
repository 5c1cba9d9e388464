"""Removes keys and configured secrets from responses, verdicts and URLs before they are stored, judged or shown.

`redaction` removes keys, which it recognises by their form, and configured secrets from responses and verdicts, and
refuses them in names that are logged. `addresses` shows URLs without secrets.
"""
