"""The page inside MLflow's own server, under `/evaltrack`: golden sets, history, drift, and the baseline button."""
