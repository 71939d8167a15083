import logging
import sys
from contextlib import contextmanager
from typing import Iterator

from allennlp.common.checks import ConfigurationError

logger = logging.getLogger(__name__)


@contextmanager
def one_sentence(command: str) -> Iterator[None]:
    """
    Ends a command with what an error says; its traceback is in the log of `ALLENNLP_DEBUG=1`.

    # Parameters

    command : `str`
        Name of the sub-command, which the sentence starts with.

    # Raises

    `SystemExit`
        In place of an error that a user can cause.
    """
    try:
        yield
    except (ConfigurationError, ValueError, OSError) as error:
        logger.debug("Stopped by", exc_info=True)
        sys.exit(f"allennlp {command}: {error}")
