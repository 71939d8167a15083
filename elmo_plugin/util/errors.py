"""The exception for wrong settings and files."""

import sys

# AllenNLP treats its own ConfigurationError in a special way, so ours is a subclass of it if
# AllenNLP has been imported. It is not imported here: that takes seven seconds, and it is optional.
_checks = sys.modules.get("allennlp.common.checks")


class ConfigurationError(Exception if _checks is None else _checks.ConfigurationError):  # type: ignore[misc]
    """A setting, or a file named by a setting, is wrong. The message explains how to fix it."""
