"""What a judgement is worth: benchmarks, agreement, comparison, reports."""
