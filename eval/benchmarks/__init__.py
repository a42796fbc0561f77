"""Benchmarks: data formats, splits and published judges."""
