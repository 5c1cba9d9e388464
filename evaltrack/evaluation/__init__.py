"""Evaluates targets: settings, plan, loop, journal and resume; sweeps, leaderboards and workers on Ray."""
