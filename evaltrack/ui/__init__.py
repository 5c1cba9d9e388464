"""Pages in a browser: golden sets and their runs over MLflow's own REST API, and the review of a golden set."""
