"""Helpers that several packages share. Imports no other package of this project."""
