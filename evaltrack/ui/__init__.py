"""Serves pages in a browser: golden sets and their runs from MLflow's REST API, and the review of a golden set."""
