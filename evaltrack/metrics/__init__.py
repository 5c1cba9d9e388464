"""Retrieval metrics, the reasoning rubric, token counts, success criteria and the means of a run."""
