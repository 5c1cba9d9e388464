"""Renderings of a leaderboard, and of what a sweep will do."""
