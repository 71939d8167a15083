"""Files of a biLM: options, weights, softmax, archives."""
