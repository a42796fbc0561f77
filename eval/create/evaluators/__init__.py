"""Evaluators of paths: how large the classes behind each triple are, and whether each triple is true."""
