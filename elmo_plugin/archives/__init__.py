"""Loads untrusted archives of trained AllenNLP models."""

from elmo_plugin.archives.load import load_archive, load_predictor

__all__ = ["load_archive", "load_predictor"]
