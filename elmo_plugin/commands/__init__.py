"""Sub-commands of `allennlp`."""

from elmo_plugin.commands.elmo import ElmoCommand

__all__ = ["ElmoCommand"]
