"""Loads archives of trained AllenNLP models, untrusted or shipped."""

from elmo_plugin.archives.load import load_archive, load_predictor, load_task

__all__ = ["load_archive", "load_predictor", "load_task"]
