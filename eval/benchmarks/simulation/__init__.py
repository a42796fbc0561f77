"""Simulated CGPST: responses composed from parts with known properties, whose true scores are known."""
