"""The exception for wrong settings and files."""

import sys

# AllenNLP tells its own class apart from other errors. Where it has been imported, ours is one of
# those; importing it here would cost seven seconds, and it need not be installed.
_checks = sys.modules.get("allennlp.common.checks")


class ConfigurationError(Exception if _checks is None else _checks.ConfigurationError):  # type: ignore[misc]
    """A setting, or a file that a setting names, is wrong; the message says how to correct it."""
