"""Loads untrusted archives of trained AllenNLP models."""

from elmo_plugin.archives.load import load_archive

__all__ = ["load_archive"]
