"""The command `elmo`: commands that need no AllenNLP, and those of trained models."""

import io
import sys
from argparse import ArgumentParser
from itertools import takewhile
from typing import Dict, List, Optional

import elmo_plugin
from elmo_plugin.commands.command import prepare_parser
from elmo_plugin.util.errors import INTERRUPTED
from elmo_plugin.util.late_imports import late_imports

# Each is a module beside this one, imported only when it is called: most import torch.
COMMANDS: Dict[str, str] = {
    "train": "train a model of a task on a corpus of your own",
    "predict": "predict with a trained model: text, JSON lines or a corpus",
    "evaluate": "evaluate a trained model on a corpus",
    "embed": "write ELMo vectors of a text to a file (HDF5, safetensors or Parquet)",
    "export": "write a biLM as options.json and weights.hdf5, or as a graph: .onnx, .pt2",
    "import": "write a biLM that bilm-tf has trained as options.json and weights.hdf5",
    "layer-weights": "show how trained models mix the layers of their biLM",
    "models": "list the published biLMs that can be opened by their names",
    "pack": "pack a trained model into a small archive",
    "probe": "measure what the layers of a biLM know about parts of speech and word senses",
    "study": "train the experiments of a study, and compare them in tables",
    "report": "write a page of HTML about studies and analyses",
    "serve": "serve trained models over HTTP, with a web page that shows their predictions",
    "score": "compute the surprisal of words, or compare minimal pairs",
    "doctor": "show what this installation has, lacks and can write",
    "vocabulary": "write the words that a biLM is trained to predict",
    "neighbours": "find the nearest contexts of a word in a sentence",
    "experiments": "copy the experiments to a folder of your own",
}
_OF_ALLENNLP = ("train", "predict", "evaluate", "study")
_HELP = ("-h", "--help")
# What the help of a command does without: libraries, and rooms or modules that need them.
_ROOMS = ("analysis", "bilm", "elmo", "modules", "serve.app", "serve.word_analyzer", "tasks")
_NOT_FOR_HELP = ("allennlp", "numpy", "torch", *(f"elmo_plugin.{room}" for room in _ROOMS))


def main(arguments: Optional[List[str]] = None) -> None:
    """Runs one of `COMMANDS`, by default with the arguments of the process; without, shows help."""
    is_process = arguments is None
    arguments = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    # Only in a process that ends with the help, because modules keep their late names.
    is_help = is_process and any(each in _HELP for each in takewhile("--".__ne__, arguments))
    for stream in (sys.stdout, sys.stderr):
        # Windows would write files and pipes in a code page, which lacks most characters.
        if isinstance(stream, io.TextIOWrapper) and stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8", errors=stream.errors)
    parser = ArgumentParser(
        prog="elmo",
        description="ELMo, deep contextualized word representations. These commands need no "
        "AllenNLP, except `train`, `predict`, `evaluate`, `study` and `serve`.",
        epilog="`elmo COMMAND --help` describes a command.",
    )
    parser.add_argument("--version", action="version", version=elmo_plugin.__version__)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    try:
        for name, summary in COMMANDS.items():
            command = commands.add_parser(name, help=summary, description=summary)
            if arguments[:1] == [name]:
                if name in _OF_ALLENNLP and not is_help:
                    _import_plugin(name)
                with late_imports(_NOT_FOR_HELP if is_help else (), ("elmo_plugin.",)):
                    prepare_parser(command, name)
        args = parser.parse_args(arguments)
        args.func(args)
    except KeyboardInterrupt:
        # Interrupted before the command began, for example while torch was imported.
        print("elmo: stopped.", file=sys.stderr)
        sys.exit(INTERRUPTED)


def _import_plugin(command: str) -> None:
    try:
        elmo_plugin.load_archive  # noqa: B018
    except ImportError as error:
        sys.exit(f"elmo {command}: {error}")
