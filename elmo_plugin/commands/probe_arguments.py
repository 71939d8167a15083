"""What `elmo probe pos` and `elmo probe wsd` have in common."""

import shlex
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, Set

import torch

from elmo_plugin.analysis.representations import (
    RANDOM_BILM,
    BilmLayers,
    CoveLayers,
    Representation,
    StaticVectors,
    random_bilm,
)
from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.fingerprint import fingerprint
from elmo_plugin.commands.bilm_arguments import add_bilm_arguments, explained_limits
from elmo_plugin.environment import setting
from elmo_plugin.modules.cove_files import read_cove_encoder
from elmo_plugin.util.atomic_write import write_json_rows
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded

STOPPED = "stopped. With --cache, the same command continues where it was."

# What can be probed, in the order of the table.
REPRESENTATIONS = ("static", "cove", "random", "bilm")


def add_probe_arguments(parser: ArgumentParser) -> None:
    """The arguments that choose what is probed, and where results are written."""
    add_bilm_arguments(parser)
    parser.add_argument(
        "--glove",
        metavar="FILE",
        default=setting("ELMO_GLOVE"),
        help="static word vectors, path or URL; empty: none (default: ELMO_GLOVE)",
    )
    parser.add_argument(
        "--cove",
        metavar="FILE",
        help="an encoder of CoVe that reads these vectors, path or URL (default: none)",
    )
    parser.add_argument(
        "--representations",
        nargs="+",
        action="extend",
        choices=REPRESENTATIONS,
        help="what to probe: static word vectors, CoVe if --cove names it, a random biLM of "
        "the same shape, the biLM (default: all)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="of the random biLM's weights (default: 0)"
    )
    parser.add_argument(
        "--cache",
        metavar="FOLDER",
        help="keep the vectors there, to continue after an interruption and to use them again",
    )
    parser.add_argument("--json", metavar="FILE", help="write all numbers there, too")


@contextmanager
def vector_folder(args: Namespace) -> Iterator[Path]:
    """The folder of vectors: `--cache`, or a temporary one. For errors see `explained_limits`."""
    if args.cache is not None:
        with explained_limits(args.cache, "The vectors done are kept"):
            yield expanded(args.cache)
        return
    with tempfile.TemporaryDirectory() as folder:
        with explained_limits(folder, "Nothing is kept without --cache"):
            yield Path(folder)


def representations(
    args: Namespace, bilm: Bilm, find_words: Callable[[], Set[str]]
) -> Iterator[Representation]:
    """The chosen representations, in turn. `find_words` returns all words of the corpus."""
    if args.cove and not args.glove:
        raise ConfigurationError("--cove needs its word vectors: name their file with --glove.")
    chosen = args.representations or [
        name
        for name in REPRESENTATIONS
        if {"static": args.glove, "cove": args.cove}.get(name, True)
    ]
    for name, given, option in (("static", args.glove, "--glove"), ("cove", args.cove, "--cove")):
        if name in chosen and not given:
            raise ConfigurationError(f"--representations {name} needs {option} with a file.")
    if "static" in chosen or "cove" in chosen:
        # Read before the static vectors are computed, which takes long.
        encoder = read_cove_encoder(args.cove) if "cove" in chosen else None
        static = StaticVectors(args.glove, find_words())
        if "static" in chosen:
            yield static
        if encoder is not None:
            yield CoveLayers(encoder, static)
    if "random" in chosen:
        random = random_bilm(bilm.options, args.seed)
        if args.bfloat16:
            random.to(torch.bfloat16)
        yield BilmLayers(random.to(bilm.boundary_ids.device), RANDOM_BILM)
    if "bilm" in chosen:
        yield BilmLayers(bilm)


def corpus_files(args: Namespace, folder: str, patterns: Dict[str, str]) -> Dict[str, str]:
    """
    The files of a corpus: those that the options name, or else those in a folder of `ELMO_DATA`.

    # Parameters

    args : `Namespace`
    folder : `str`
    patterns : `Dict[str, str]`
        For each option, `train` for `--train`, the name of the file in the folder.

    # Raises

    `ConfigurationError`
        If only some of the options are given: files of two corpora would be mixed. If the folder
        has no file, or several, for a pattern.
    """
    given = {name: getattr(args, name.replace("-", "_")) for name in patterns}
    missing = [f"--{name}" for name in patterns if not given[name]]
    if missing and len(missing) < len(patterns):
        raise ConfigurationError(
            f"Expected all of {', '.join(f'--{name}' for name in patterns)}, or none of them for "
            f"the corpus in ELMO_DATA; found no {', '.join(missing)}."
        )
    return given if not missing else {n: _found(folder, p, n) for n, p in patterns.items()}


def _found(folder: str, pattern: str, option: str) -> str:
    """The only file with such a name in a folder of `ELMO_DATA`, without `.gz`."""
    path = Path(setting("ELMO_DATA"), folder).expanduser()
    paths = [*path.glob(pattern), *path.glob(f"{pattern}.gz")]
    found = sorted({str(found).removesuffix(".gz") for found in paths})
    if len(found) != 1:
        names = f": {', '.join(found)}" if found else ""
        raise ConfigurationError(
            f"Expected one file {path / pattern}, found {len(found)}{names}. Name it with "
            f"--{option}, or set ELMO_DATA."
        )
    return found[0]


def write_results(args: Namespace, bilm: Bilm, results: Dict[str, Any]) -> None:
    """Writes `--json`, if it is given: what was probed, and the results."""
    if args.json is None:
        return
    names = ("options_file", "weight_file", "glove", "cove")
    probed = {
        # `allennlp elmo-probe` as `elmo probe`.
        "command": shlex.join(["elmo", *sys.argv[1:]]).replace("elmo elmo-", "elmo "),
        # Without the folders of this machine, as far as the files are below the working directory.
        **{n: str(getattr(args, n) or "").removeprefix(f"{Path.cwd()}/") for n in names},
        "bilm_fingerprint": fingerprint(bilm),
        "seed": args.seed,
    }
    write_json_rows(args.json, {**probed, **results}, "representation")
