"""Linear layers whose weights are packed for many small matrix products."""
