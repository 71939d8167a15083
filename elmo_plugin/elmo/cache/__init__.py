"""The layers of a frozen biLM, with a cache on disk."""
