"""Readers and writers of corpus formats, as frozen dataclasses. No torch, no AllenNLP."""
