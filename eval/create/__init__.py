"""CREATE, a benchmark of associative creativity: many specific, factual and different paths between two entities."""
