"""From text to a trained biLM."""
