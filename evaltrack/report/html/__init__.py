"""Renders a run or a comparison as one self-contained HTML page that makes no requests and escapes foreign text."""
