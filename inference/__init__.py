"""Everything that produces a judgement: rubric, records, prompts, scoring, engines, methods, runner and store."""
