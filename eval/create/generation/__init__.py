"""Generation of paths: queries in, a model's answers out."""
