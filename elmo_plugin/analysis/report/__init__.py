"""A page of results: from studies, probes, layer weights and learning curves."""
