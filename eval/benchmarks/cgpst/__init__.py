"""CGPST, future problem solving in six steps: its official files in and out, their checks, and the benchmark itself."""
