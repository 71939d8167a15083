"""
Reduces the output of `allennlp` to what a user needs: the paths of the corpora, progress bars with
metrics, results, warnings to act on, and one sentence per error. A training run writes its full log
to `out.log`. `ALLENNLP_DEBUG` or `ALLENNLP_LOG_LEVEL` shows everything.
"""

import json
import logging
import os
import re
import sys
import warnings
from pathlib import Path
from types import TracebackType
from typing import Optional, Type

from elmo_plugin.util.errors import INTERRUPTED, is_interruption, jsonnet_message

# Messages to show: the logger, and how they begin.
_SHOWN = (
    ("allennlp.commands.find_learning_rate", ("Saving",)),
    ("allennlp.commands.test_install", ("",)),
    ("allennlp.common.params", ("train_data_path = ", "validation_data_path = ")),
    ("allennlp.common.util", ("Metrics: ",)),
    (
        "allennlp.training.gradient_descent_trainer",
        ("Epoch %d", "Ran out of patience", "The schedule"),
    ),
    ("allennlp.training.util", ("Recovering from",)),
    ("root", ("Training interrupted",)),
    ("elmo_plugin", ("",)),
)
# Warnings about deliberate choices of our experiments.
_HIDDEN_WARNINGS = (
    "Your label namespace was",
    "You provided a validation dataset but patience was set to None",
    'Metrics with names beginning with "_"',
    "vocabulary serialization directory",
    # A predicted corpus with labels.
    "Encountered the loss key in the model's return dictionary",
)
# Libraries whose `UserWarning`s a user cannot act on.
_NOISY_MODULES = r"(allennlp|fairscale|spacy|torch\.(?!cuda)|torchvision|transformers)"
# Our loggers that repeat their messages in each epoch or for each model.
_HIDDEN_INFORMATION = (
    "elmo_plugin.elmo.cache.layer_cache",
    "elmo_plugin.modules.token_embedders.word_vectors",
)
_SINGLE_LABEL = re.compile(r"(precision|recall|f1-measure)-(?!overall)")

# By name, because errors of other processes arrive as text.
_USER_ERRORS = {"ConfigurationError", "OSError", "FileNotFoundError", "PermissionError"}
_USER_ERRORS |= {"IsADirectoryError", "NotADirectoryError", "UnicodeDecodeError"}
# How the errors of readers of files begin, ours (see `unexpected`) and those of others.
_BAD_INPUT = re.compile(r"[^\n]*(:\d+: |: expected .*, found )", re.DOTALL)
_LAST_OF_TRACEBACK = re.compile(r"^\s*(?:\w+\.)*(\w+(?:Error|Exception)): ", re.MULTILINE)


def is_command(*others: str) -> bool:
    """True in `allennlp`, or a command of `others`; false where Python code calls its functions."""
    program = Path(sys.argv[0])
    is_module = program.parts[-2:] == ("allennlp", "__main__.py")
    return program.stem in ("allennlp", *others) or is_module


def quieten_command() -> None:
    """`quieten` for `allennlp` and its workers."""
    if is_command():
        quieten()


def quieten() -> None:
    """Configures the console of a command, unless the user has set a log level."""
    if os.environ.get("ALLENNLP_DEBUG") or os.environ.get("ALLENNLP_LOG_LEVEL"):
        return
    if not sys.warnoptions:
        for category in (DeprecationWarning, FutureWarning):
            warnings.filterwarnings("ignore", category=category, module="(?!elmo_plugin)")
        warnings.filterwarnings("ignore", category=UserWarning, module=_NOISY_MODULES)
    _configure_console()


def explanation(error: BaseException) -> Optional[str]:
    """
    One line for an error that a user can cause, here or in a worker: wrong settings or files, a
    malformed corpus, invalid jsonnet, an interruption. `None` if the error needs its traceback.
    """
    if is_interruption(error):
        return "stopped"
    names = {kind.__name__ for kind in type(error).__mro__}
    message = str(error)
    if "Traceback" in message and (found := list(_LAST_OF_TRACEBACK.finditer(message))):
        names, message = {found[-1][1]}, message[found[-1].end() :]
    if jsonnet := jsonnet_message(message):
        return jsonnet
    if "OutOfMemoryError" in names:
        return (
            "the GPU has too little memory. Lower --batch-size, or the sizes of batches in the "
            "experiment."
        )
    if names & _USER_ERRORS or ("ValueError" in names and _BAD_INPUT.match(message)):
        return " ".join(message.split())
    return None


def _configure_console() -> None:
    sys.excepthook = _log_uncaught
    if not logging.root.handlers:
        # Of `elmo` before training: the handler of last resort has no filters.
        logging.basicConfig()
    for handler in logging.root.handlers:
        is_console = type(handler) is logging.StreamHandler
        if is_console and not isinstance(handler.formatter, _ConsoleFormatter):
            handler.setFormatter(_ConsoleFormatter())
            handler.addFilter(_is_worth_showing)


def _log_uncaught(
    kind: Type[BaseException], error: BaseException, traceback: Optional[TracebackType]
) -> None:
    # Log files get the traceback; `_ConsoleFormatter` prints one sentence on the console.
    logging.root.critical("Uncaught exception", exc_info=(kind, error, traceback))
    if is_interruption(error):
        sys.exit(INTERRUPTED)


class _ConsoleFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and (sentence := explanation(error)) is not None:
            return f"error: {sentence}"
        if record.levelno >= logging.WARNING:
            return f"{record.levelname.lower()}: {super().format(record)}"
        text = super().format(record)
        return _without_details(text) if record.name == "allennlp.common.util" else text


def _is_library(logger: str) -> bool:
    """True if a logger belongs to an installed package, not to the user's own code."""
    module = sys.modules.get(logger.partition(".")[0])
    path = getattr(module, "__file__", None) or "site-packages"
    # Debian and Colab install into dist-packages.
    return "site-packages" in path or "dist-packages" in path


def _is_worth_showing(record: logging.LogRecord) -> bool:
    command = "".join(sys.argv[1:2]).removeprefix("elmo-")
    if record.levelno >= logging.WARNING:
        # Labels are not needed to predict.
        of_predict = ("%s: no label in",) if command == "predict" else ()
        return not str(record.msg).startswith(_HIDDEN_WARNINGS + of_predict)
    # Tables of metrics are for `evaluate`, which prints metrics itself; in training, progress bars
    # show them.
    repeated = {"train": "elmo_plugin.tasks.model", "evaluate": "allennlp.common.util"}
    if record.name in (*_HIDDEN_INFORMATION, repeated.get(command)):
        return False
    is_of_user = record.levelno >= logging.INFO and not _is_library(record.name)
    return is_of_user or any(
        record.name.startswith(logger) and str(record.msg).startswith(beginnings)
        for logger, beginnings in _SHOWN
    )


def _without_details(message: str) -> str:
    """The metrics on one line, without single labels; after training, best epoch and test only."""
    if not message.startswith("Metrics: "):
        return message
    metrics = json.loads(message.removeprefix("Metrics: "))
    overall = {name: value for name, value in metrics.items() if not _SINGLE_LABEL.search(name)}
    best = {name: overall[name] for name in overall if name.startswith(("best_", "test_"))}
    has_best = any(name.startswith("best_validation_") for name in best)
    shown = (best if has_best else overall).items()
    return ", ".join(f"{name}: {round(v, 4) if type(v) is float else v}" for name, v in shown)
