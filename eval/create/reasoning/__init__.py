"""Reasoning traces: what a model's thinking goes through before it answers, and by which strategies."""
