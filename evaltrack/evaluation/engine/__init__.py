"""The questions of a run asked by the workers of a Ray or Spark that people already run."""
