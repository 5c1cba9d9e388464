"""What keeps secrets out of everything that is kept, judged or shown.

`forms` knows keys by their form, `redaction` takes them out of what targets and judges return, `masking` knows the
values that were configured, `addresses` shows URLs without what may be secret in them, and `names` refuses secrets
where a name is logged.
"""
