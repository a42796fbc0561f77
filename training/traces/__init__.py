"""Evidence traces: what an analyst wrote, collected from runs and filtered, to train both phases of the evaluator."""
