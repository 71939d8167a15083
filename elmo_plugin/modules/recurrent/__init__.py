"""Recurrent layers over packed sentences."""
