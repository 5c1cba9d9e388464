"""Renderings of a `RunResult`: text for a terminal, Markdown for MLflow, JSON for machines. Nothing is computed."""
