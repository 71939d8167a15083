"""What the two probes have in common: which vectors are probed, and where results are written."""

import shlex
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Set, Tuple

import torch

from elmo_plugin.analysis.representations import (
    RANDOM_BILM,
    BilmLayers,
    CoveLayers,
    Representation,
    StaticVectors,
    random_bilm,
)
from elmo_plugin.bilm import Bilm, fingerprint
from elmo_plugin.commands.arguments import option
from elmo_plugin.commands.bilm_arguments import BilmArguments
from elmo_plugin.environment import setting
from elmo_plugin.modules.cove_files import read_cove_encoder
from elmo_plugin.util.atomic_write import check_output, write_json_rows
from elmo_plugin.util.errors import ConfigurationError

# What can be probed, in the order of the table, and the option that names its file.
_FILES = {"static": "glove", "cove": "cove", "random": None, "bilm": None}
STOPPED = "stopped. With --cache, the same command continues where it was."


@dataclass(kw_only=True)
class ProbeArguments(BilmArguments):
    """What is probed, and where results are written."""

    glove: Optional[str] = option(
        "static word vectors, path or URL; empty: none (default: ELMO_GLOVE)", metavar="FILE"
    )
    cove: Optional[str] = option(
        "an encoder of CoVe that reads these vectors, path or URL (default: none)", metavar="FILE"
    )
    representations: Optional[List[str]] = option(
        "what to probe: static word vectors, CoVe if --cove names it, a random biLM of "
        "the same shape, the biLM (default: all)",
        choices=tuple(_FILES),
    )
    cache: Optional[Path] = option(
        "keep the vectors there, to continue after an interruption and to use them again",
        metavar="FOLDER",
    )
    json: Optional[str] = option("write all numbers there, too", metavar="FILE")

    def __post_init__(self) -> None:
        if self.glove is None:
            self.glove = setting("ELMO_GLOVE")

    def chosen(self, bilm: Bilm, find_words: Callable[[], Set[str]]) -> Iterator[Representation]:
        """The chosen representations, in turn. `find_words` returns all words of the corpus."""
        chosen = self.representations or [
            name for name, file in _FILES.items() if file is None or getattr(self, file)
        ]
        for name, file in (("static", "glove"), ("cove", "cove"), ("cove", "glove")):
            if name in chosen and not getattr(self, file):
                raise ConfigurationError(f"--representations {name} needs --{file} with a file.")
        if "static" in chosen or "cove" in chosen:
            # Read before the static vectors are computed, which takes long.
            encoder = read_cove_encoder(str(self.cove)) if "cove" in chosen else None
            static = StaticVectors(str(self.glove), find_words())
            if "static" in chosen:
                yield static
            if encoder is not None:
                yield CoveLayers(encoder, static)
        if "random" in chosen:
            random = random_bilm(bilm.options, seed=0)
            if self.bfloat16:
                random.to(torch.bfloat16)
            yield BilmLayers(random.to(bilm.options_json.device), RANDOM_BILM)
        if "bilm" in chosen:
            yield BilmLayers(bilm)


def run_probe(
    args: Any,
    folder: str,
    patterns: Mapping[str, str],
    probe: Callable[[Any, Dict[str, str], Bilm, Path], Tuple[Dict[str, Any], str]],
) -> str:
    """
    Runs a probe, writes `--json` and returns the table. For `folder` and `patterns` see
    `_corpus_files`. `probe` gets `args`, the corpus files, the biLM and a folder for vectors, and
    returns results and table.
    """
    if args.json is not None:
        check_output(args.json, force=True)
    files = _corpus_files(args, folder, patterns)
    bilm = args.load_bilm()
    with nullcontext(args.cache) if args.cache else TemporaryDirectory() as vectors:
        results, table = probe(args, files, bilm, Path(vectors))
    if args.json is not None:
        # `allennlp elmo-probe` as `elmo probe`.
        command = shlex.join(["elmo", *sys.argv[1:]]).replace("elmo elmo-", "elmo ")
        probed: Dict[str, Any] = {"command": command}
        for name in ("bilm", "options_file", "weight_file", "glove", "cove"):
            # Without the folders of this machine, if the file is below the working directory.
            probed[name] = str(getattr(args, name) or "").removeprefix(f"{Path.cwd()}/")
        probed |= {"bilm_fingerprint": fingerprint(bilm), "files": files}
        write_json_rows(args.json, {**probed, **results}, "representation")
    return table


def _corpus_files(args: Any, folder: str, patterns: Mapping[str, str]) -> Dict[str, str]:
    """
    The files that the options name, or else files in `folder` of `ELMO_DATA`. `patterns` maps the
    name of each option, such as `train`, to its file there. Refuses some options without the
    others, which would mix two corpora.
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
