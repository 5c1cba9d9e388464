"""Stores evaluations as MLflow runs and reads them back. No other package calls MLflow's API.

`store` finds the tracking store and checks that it answers. `writer` fills one run. `traces` lets MLflow's own
*Evaluation runs* view compare two runs question by question. `find_runs` finds runs again and reads their rows. MLflow
is imported inside functions, because that takes 2 s.
"""
