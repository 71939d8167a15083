"""Archives of trained AllenNLP models: untrusted ones, packed ones, and those that are shipped."""

from elmo_plugin.archives.load import load_archive, load_predictor
from elmo_plugin.archives.shipped_tasks import load_task

__all__ = ["load_archive", "load_predictor", "load_task"]
