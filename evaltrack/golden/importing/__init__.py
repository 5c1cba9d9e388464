"""Imports golden sets of other tools: reads their files as rows, and converts rows to checked golden lines."""
