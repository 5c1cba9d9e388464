"""What keeps secrets out of everything that is kept, judged or shown.

`secret_patterns` knows keys by their form, `redaction` takes them and the values that were configured out of what
targets and judges return, and refuses them where a name is logged; `addresses` shows URLs without what may be secret.
"""
