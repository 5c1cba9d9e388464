"""Computes retrieval metrics, scores of answers and reasoning, token counts, success criteria and means of a run."""
