"""The exception for wrong settings and files."""


class _Error(Exception):
    """A class of its own, which `elmo_plugin.plugin` can replace by AllenNLP's."""


class ConfigurationError(_Error):
    """
    A setting, or a file named by a setting, is wrong. The message explains how to fix it.

    Once `elmo_plugin.plugin` has been imported, a subclass of AllenNLP's class of this name.
    """
