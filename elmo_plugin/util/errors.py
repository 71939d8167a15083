"""The exception for wrong settings and files."""


class _Error(Exception):
    """
    The base that `elmo_plugin.plugin` replaces by AllenNLP's class: Python does not replace the
    base of a class whose base is `Exception` itself.
    """


class ConfigurationError(_Error):
    """
    A setting, or a file named by a setting, is wrong. The message explains how to fix it.

    Once `elmo_plugin.plugin` has been imported, a subclass of AllenNLP's class of this name.
    """
