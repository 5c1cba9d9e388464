"""Compares a candidate run with a baseline run, question by question, finds causes and decides. Never calls MLflow.

`engine` combines the other modules: `pairing` holds the common questions, `changes` those that differ, `differences`
and `causes` find the reasons, `culprits` finds common causes, `reruns` decides which broken questions count, `gate`
holds the rules and settings, and `verdict` applies them. `change` and `comparison` define the records.
"""
