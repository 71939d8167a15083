"""The layers of a frozen biLM, kept on disk."""
