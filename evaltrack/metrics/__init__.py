"""From a response to numbers: metrics, retrieval, the reasoning rubric, tokens, criteria, the means of a run."""
