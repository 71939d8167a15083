import os
import pickle
from functools import lru_cache
from pathlib import Path
from typing import Callable, Dict, Iterator, Optional, Sequence, Tuple, Union

import torch

from elmo_plugin.bilm import Bilm
from elmo_plugin.elmo.store.dump import DumpOptions, DumpSummary, dump_embeddings, finished_dump
from elmo_plugin.elmo.store.formats import format_of
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded
from elmo_plugin.util.folder_lock import wait_for_lock
from elmo_plugin.util.ray_tasks import run_with_ray

#: The result for a text: the summary of its file, or the error that prevented it.
Outcome = Union[DumpSummary, Exception]
# How long a Ray task waits for a task of a killed driver that writes the same file.
_TIMEOUT_SECONDS = 60.0
_Path = Union[str, os.PathLike]
_Outcomes = Iterator[Tuple[_Path, Outcome]]


def shard_outputs(texts: Sequence[_Path], folder: _Path) -> Dict[_Path, Path]:
    """
    Maps each text to its output: its name in `folder`, without `.gz` and with the suffix of the
    format that the suffix of `folder` names. Raises `ConfigurationError` if two outputs are equal.
    """
    texts_of: Dict[Path, _Path] = {}
    folder = expanded(folder)
    suffix = format_of(folder).suffix
    for text in texts:
        output = folder / f"{os.path.basename(text).removesuffix('.gz')}{suffix}"
        if output in texts_of:
            other = texts_of[output]
            raise ConfigurationError(f"{other} and {text} would both be written to {output}.")
        texts_of[output] = text
    return {text: output for output, text in texts_of.items()}


def dump_shards(
    bilm: Bilm,
    outputs: Dict[_Path, Path],
    options: DumpOptions,
    force: bool = False,
    num_workers: int = 0,
) -> _Outcomes:
    """
    Writes each text with `dump_embeddings`, in order, and yields it with its outcome. Finished
    files are not written again, unless `force` is set.
    """
    for text, output in outputs.items():
        outcome: Outcome
        try:
            outcome = _dump(bilm, text, output, options, force, num_workers)
        # A text that is not UTF-8 raises `ValueError`.
        except (ConfigurationError, OSError, ValueError) as error:
            outcome = error
        yield text, outcome


def dump_shards_with_ray(
    load: Callable[[], Bilm],
    outputs: Dict[_Path, Path],
    options: DumpOptions,
    force: bool = False,
    address: Optional[str] = None,
    num_cpus: float = 1,
) -> _Outcomes:
    """
    Does what `dump_shards` does, with one Ray task per text (see `run_with_ray`). All machines of a
    cluster need the texts, the files of the biLM and the output folder at the same paths. Only
    paths, settings and `load` are sent; each worker calls `load` once. If a worker dies, its task
    starts again after the lines that are done. So does the next call if this process is killed.
    """
    texts = list(outputs)
    settings = (options, force, max(1, int(num_cpus)))
    calls = [(pickle.dumps(load), text, outputs[text].resolve(), *settings) for text in texts]
    for number, outcome in run_with_ray(_task, calls, address, num_cpus):
        yield texts[number], outcome


def _dump(
    bilm: Bilm, text: _Path, output: Path, options: DumpOptions, force: bool, num_workers: int = 0
) -> DumpSummary:
    if not force and (finished := finished_dump(bilm, text, output, options)):
        return finished
    return dump_embeddings(bilm, text, output, options, force, num_workers=num_workers)


@lru_cache(maxsize=1)
def _loaded(load: bytes) -> Bilm:
    # Cached, because a Ray worker runs several tasks, one after the other.
    return pickle.loads(load)()


def _task(
    load: bytes, text: _Path, output: Path, options: DumpOptions, force: bool, num_threads: int
) -> DumpSummary:
    torch.set_num_threads(num_threads)
    bilm = _loaded(load)
    # After each wait, `_dump` checks again whether the file is finished.
    return wait_for_lock(lambda: _dump(bilm, text, output, options, force), _TIMEOUT_SECONDS)
