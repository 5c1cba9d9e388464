"""Shell completion, which answers while a person types: no command is imported, and neither MLflow nor pydantic.

`tree.json` holds the commands with their options, made from them by `scripts/write_derived`; `tree` makes light
commands of it for click's own completion, and `values` looks up what may stand in an option.
"""
