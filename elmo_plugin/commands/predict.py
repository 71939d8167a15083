"""
Predict with a trained model, and print a line of JSON for each input.

ARCHIVE is the model.tar.gz or the folder of a training run, or the name of a model that comes with
the project, such as ner; nothing in it is executed. INPUT is a text, a file or - for standard
input. A file has a sentence or document per line, a JSON object per line (`allennlp predict` reads
the same ones), the same fields as columns of CSV or TSV, whose first row names them, or the format
of the task's corpus; the command recognises which and says so. It may be gzip.

example:
    %(prog)s ner "Ada Lovelace lived in London."
    %(prog)s out/ner sentences.txt --format conll -o tagged.conll
    cat sentences.txt | %(prog)s out/ner - | head
"""

import os
import re
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Iterator, Optional

from allennlp.common.util import lazy_groups_of
from allennlp.predictors import Predictor

import elmo_plugin
from elmo_plugin.commands.arguments import Device, PositiveInt, flag, option, positional
from elmo_plugin.commands.command import say
from elmo_plugin.console import quieten
from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.tasks.inputs import Inputs, read_inputs
from elmo_plugin.tasks.predictor import TaskPredictor
from elmo_plugin.util.atomic_write import atomic_write, check_output
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import STANDARD_INPUT, find_archive
from elmo_plugin.util.progress import progress

# A name without spaces that has a folder or a suffix.
_PATH = re.compile(r"\S*(/\S*|\w\.[A-Za-z]\w{1,7}(\.gz)?)")


@dataclass(kw_only=True)
class Options:
    archive: str = positional("ARCHIVE", "model.tar.gz, folder or name")
    input: str = positional(
        "INPUT", "text, file or - (default: standard input)", nargs="?", default=STANDARD_INPUT
    )
    input_format: Optional[str] = option(
        "what INPUT is (default: recognised by its content)", choices=["text", "json", "corpus"]
    )
    format: str = option(
        "of the predictions; conll is for the task's official scorer",
        "json",
        choices=["json", "conll", "csv"],
    )
    output_file: Optional[Path] = option(
        "file to write (default: standard output)", short="-o", metavar="OUT"
    )
    force: bool = flag("replace OUT")
    batch_size: PositiveInt = option("maximum number of inputs computed at once", 32)
    device: Device = Device.option()
    predictor_args: str = option(
        """parameters of the task's predictor, such as '{"spacy_model": "en_core_web_sm"}' """
        "(default: none)",
        "",
        metavar="JSON",
    )


def run(args: Options) -> str:
    quieten()
    output = args.output_file and check_output(args.output_file, args.force)
    text = _given_text(args)
    predictor = _predictor(args)
    inputs = read_inputs(
        predictor, args.input if text is None else "the text", args.input_format, text
    )
    if text is None:
        say(inputs.description)
    is_seen = text is not None or (output is None and sys.stdout.isatty())
    with ExitStack() as stack:
        file = sys.stdout
        if output:
            file = open(stack.enter_context(atomic_write(output)), "w", encoding="utf-8")
            stack.enter_context(file)
        advance = (lambda number: None) if is_seen else stack.enter_context(progress("inputs"))
        for line in _predictions(predictor, inputs, args):
            file.write(line)
            file.flush()
            advance(1)
    return ""


def _given_text(args: Options) -> Optional[str]:
    """INPUT, if it is a text. Raises `FileNotFoundError` if it looks like the name of a file."""
    given = args.input
    exists = os.path.exists(os.path.expanduser(given)) or os.path.exists(f"{given}.gz")
    if given == STANDARD_INPUT or exists or "://" in given.split(" ")[0]:
        return None
    if _PATH.fullmatch(given) and not args.input_format:
        raise FileNotFoundError(
            f"No such file: {given}. If it is a text to predict, add --input-format text."
        )
    return given


def _predictor(args: Options) -> TaskPredictor:
    archive_file = find_archive(args.archive)
    settings = parse_object(args.predictor_args or "{}", "--predictor-args")
    # Limits of the archive's reader apply to training only.
    archive = elmo_plugin.load_archive(archive_file, args.device.number, every_instance=True)
    predictor = Predictor.from_archive(
        archive, extra_args={"output_format": args.format, **settings}
    )
    if not isinstance(predictor, TaskPredictor):
        raise ConfigurationError(
            f"{args.archive}: expected a model of this plugin, found one whose predictor is "
            f"{type(predictor).__name__}. Use allennlp predict."
        )
    return predictor


def _predictions(predictor: TaskPredictor, inputs: Inputs, args: Options) -> Iterator[str]:
    predict = predictor.predict_batch_instance if inputs.is_corpus else predictor.predict_batch_json
    is_terminal = args.input == STANDARD_INPUT and sys.stdin.isatty()
    for batch in lazy_groups_of(inputs.items, 1 if is_terminal else args.batch_size):
        yield from map(predictor.dump_line, predict(batch))
