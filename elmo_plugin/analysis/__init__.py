"""What a trained biLM knows: numbers and objects, without printing."""
