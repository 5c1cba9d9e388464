"""The only door to MLflow: find the store, write an evaluation into a run, read it back.

`store` finds the tracking store and checks that it answers; `writer` fills one run; `traces` makes MLflow's own
*Evaluation runs* view compare two runs question by question; `reader` reads rows back. MLflow is imported inside
functions, because that takes 2 s.
"""
