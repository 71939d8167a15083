"""Studies: train experiments with several seeds and shares of the data, and compare scores."""
