"""Queries: the published set read from files, or new ones built from a graph of facts."""
