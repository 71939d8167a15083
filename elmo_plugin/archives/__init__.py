"""Loads archives of trained AllenNLP models, untrusted ones and those of the project."""

from elmo_plugin.archives.load import load_archive, load_predictor, load_task

__all__ = ["load_archive", "load_predictor", "load_task"]
