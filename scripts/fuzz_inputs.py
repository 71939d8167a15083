"""
Damages inputs of every format, gives each to what reads it, and reports errors that are not one
sentence for the user, and inputs that take too long.

    python scripts/fuzz_inputs.py [--number N] [--seed S] [--only CASE]

A case is determined by the seed and its number, so `--only` repeats one, with its traceback.
"""

# ruff: noqa: E402

import argparse
import contextlib
import gzip
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Callable, List, NamedTuple, Optional, Sequence

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures"
OPTIONS, WEIGHTS = FIXTURES / "bilm/options.json", FIXTURES / "bilm/weights.hdf5"
os.environ.update(ELMO_CACHE="", ELMO_OPTIONS=str(OPTIONS), ELMO_WEIGHTS=str(WEIGHTS))

import _jsonnet
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.meta import Meta
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models import Model
from allennlp.models.archival import archive_model
from damaged import (
    Damage,
    damage_archive,
    damage_bytes,
    damage_gzip,
    damage_hdf5,
    damage_json,
    damage_lines,
    damage_safetensors,
    damage_state,
)

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.analysis.neighbours import ContextIndex, build_index
from elmo_plugin.analysis.report import read_sections
from elmo_plugin.analysis.representations import StaticVectors
from elmo_plugin.analysis.studies.study import read_study
from elmo_plugin.archives import load_predictor
from elmo_plugin.bilm import load_bilm, save_weights
from elmo_plugin.bilm.files.pack import pack
from elmo_plugin.bilm.files.softmax import SoftmaxWeights, find_softmax, save_softmax
from elmo_plugin.bilm.vocabulary_file import read_vocabulary
from elmo_plugin.commands.allennlp_input import PredictManager
from elmo_plugin.commands.main import main
from elmo_plugin.corpora.minimal_pairs import read_minimal_pairs
from elmo_plugin.corpora.tagged_words import read_conllu
from elmo_plugin.corpora.word_senses import SenseCorpus, read_first_senses
from elmo_plugin.modules.cove_files import read_cove_encoder

SECONDS = 8.0
# Files that are read with those beside them.
BESIDE = (".npy", ".hdf5", ".json", ".dic", ".pkl")
TASKS = {
    "ner": "ner/dev.conll", "srl": "srl/dev.gold_conll", "coref": "coref/dev.gold_conll",
    "snli": "snli/snli_1.0_dev.jsonl", "squad": "squad/dev-v1.1.json", "sst": "sst/dev.txt",
}  # fmt: skip


class Target(NamedTuple):
    """A file to damage, and what reads it."""

    source: Path
    damage: Damage
    read: Callable[[Path], object]


def make_archive(task: str, folder: Path) -> Path:
    """The `model.tar.gz` of an untrained model."""
    params = Params.from_file(FIXTURES / f"experiments/{task}.jsonnet")
    reader = DatasetReader.from_params(params.duplicate()["dataset_reader"])
    instances = list(reader.read(FIXTURES / "corpora" / TASKS[task]))[:20]
    vocabulary = Vocabulary.from_params(params.pop("vocabulary", Params({})), instances=instances)
    folder.mkdir()
    params.to_file(str(folder / "config.json"))
    model = Model.from_params(params["model"], vocab=vocabulary, serialization_dir=str(folder))
    vocabulary.save_to_files(str(folder / "vocabulary"))
    torch.save(model.state_dict(), folder / "best.th")
    Meta.new().to_file(folder / "meta.json")
    return Path(archive_model(folder))


def make_targets(folder: Path, tasks: Sequence[str]) -> List[Target]:
    bilm, corpora, words = load_bilm(OPTIONS, WEIGHTS), FIXTURES / "corpora", ["the", "of", "cat"]
    softmax, index, out = folder / "softmax", folder / "index", folder / "out"
    softmax.mkdir()
    shutil.copy(WEIGHTS, softmax)
    weight = torch.rand(6, bilm.options.output_dim // 2)
    vocabulary = ["<S>", "</S>", "<UNK>", *words]
    save_softmax(SoftmaxWeights(weight, weight[:, 0], vocabulary, [9] * 6), softmax)
    save_weights(bilm, folder / "weights.safetensors")
    build_index(bilm, [corpora / "lm/small/heldout.txt"], index)
    vectors = folder / "vectors.txt"
    vectors.write_bytes(gzip.decompress((corpora / "glove/vectors.100d.txt.gz").read_bytes()))
    study = _jsonnet.evaluate_file(
        str(FIXTURES / "studies/table7.jsonnet"), ext_vars=dict(os.environ)
    )
    (folder / "study.json").write_text(study)
    static = partial(StaticVectors, words=words)
    scored = ["--weight-file", str(softmax / "weights.hdf5")]
    results = FIXTURES.parent / "experiments/results"
    targets = [
        Target(OPTIONS, damage_json, lambda path: load_bilm(path, WEIGHTS)),
        Target(WEIGHTS, damage_hdf5, lambda path: load_bilm(OPTIONS, path)),
        Target(folder / "weights.safetensors", damage_safetensors, lambda p: load_bilm(OPTIONS, p)),
        Target(softmax / "softmax.hdf5", damage_hdf5, lambda p: find_softmax(p, bilm.options)),
        Target(softmax / "vocabulary.txt", damage_lines, read_vocabulary),
        Target(vectors, damage_lines, static),
        Target(corpora / "glove/vectors.100d.txt.gz", damage_gzip, static),
        Target(FIXTURES / "cove/weights.pth", damage_state, read_cove_encoder),
        Target(corpora / "pos/dev.conllu", damage_lines, lambda path: list(read_conllu(path))),
        Target(corpora / "wsd/test.jsonl", damage_json, lambda path: list(SenseCorpus(path))),
        Target(corpora / "wsd/first_sense.tsv", damage_lines, read_first_senses),
        Target(corpora / "minimal_pairs/islands.jsonl", damage_json, read_minimal_pairs),
        Target(results / "cove/results.json", damage_json, lambda path: read_sections([path])),
        Target(folder / "study.json", damage_json, read_study),
        Target(results / "senses.json", damage_json, lambda path: read_sections([path])),
        Target(index / "index.json", damage_json, lambda path: ContextIndex(path.parent)),
        Target(index / "layer_1.npy", damage_bytes, lambda path: ContextIndex(path.parent)),
    ]
    many_langs = FIXTURES / "many_langs"
    for name, damage in (
        *(("both/config.json", damage_json), ("both/model.json", damage_json)),
        *(("both/char.dic", damage_lines), ("both/word.dic", damage_lines)),
        *(("both/encoder.pkl", damage_bytes), ("words/token_embedder.pkl", damage_state)),
    ):
        targets.append(Target(many_langs / name, damage, lambda path: load_bilm(path.parent)))
    for arguments in (["embed", "", out, "--all", "--force"], ["score", "", *scored],
                      ["vocabulary", "", out, "--force"]):  # fmt: skip
        run = partial(run_command, arguments)
        targets.append(Target(corpora / "lm/small/heldout.txt", damage_lines, run))
    for task in tasks:
        archive, lines = make_archive(task, folder / task), FIXTURES / f"predict/{task}.jsonl"
        predictor, corpus = load_predictor(archive), corpora / TASKS[task]
        reader, damage = predictor._dataset_reader, damage_lines
        if corpus.suffix.startswith(".json"):
            damage = damage_json
        overrides = folder / task / "overrides.json"
        shutil.copy(folder / task / "config.json", overrides)
        targets += [
            Target(archive, damage_archive, partial(predict, lines)),
            Target(archive, damage_archive, lambda path: pack(path, out)),
            Target(overrides, damage_json, partial(override, archive)),
            Target(corpus, damage, lambda path, reader=reader: list(reader.read(path))),
            Target(lines, damage_json, partial(predict, predictor=predictor)),
        ]
    return targets


def predict(lines: Path, archive: Optional[Path] = None, predictor: Any = None) -> None:
    predictor = predictor or load_predictor(archive or lines)
    PredictManager(predictor, str(lines), None, 4, True, False).run()


def override(archive: Path, overrides: Path) -> object:
    return load_predictor(archive, overrides=overrides.read_text(errors="replace"))


def run_command(arguments: Sequence[object], path: Path) -> None:
    main([str(argument or path) for argument in arguments])


class TooLong(BaseException):
    """An input took more than `SECONDS` of the processor."""


def stop(*_: object) -> None:
    raise TooLong


def obscure(error: BaseException, path: Path) -> bool:
    """Whether an error is not a sentence that names the file."""
    if isinstance(error, SystemExit):
        return not isinstance(error.code, str)
    if isinstance(error, ConfigurationError):
        return not str(error)
    return not isinstance(error, (ValueError, OSError)) or path.name not in str(error)


def run_case(target: Target, path: Path, content: bytes) -> Optional[BaseException]:
    """The obscure error of an input, or `None`."""
    if target.source.suffix in BESIDE:
        shutil.copytree(target.source.parent, path.parent)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    start = time.process_time()
    silence = open(os.devnull, "w")
    try:
        with silence, contextlib.redirect_stdout(silence), contextlib.redirect_stderr(silence):
            target.read(path)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt) or obscure(error, path):
            return error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
        shutil.rmtree(path.parent)
    return TooLong() if time.process_time() - start > SECONDS else None


def fuzz(number: int, seed: int, tasks: Sequence[str], only: Sequence[int] = ()) -> List[str]:
    """Reads damaged inputs; returns a line for each obscure error."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        targets = make_targets(Path(folder), tasks)
        for case in only or range(number):
            target, draw = targets[case % len(targets)], Random(f"{seed} {case}")
            content = target.damage(target.source.read_bytes(), draw)
            path = Path(folder, "case", target.source.name)
            error = run_case(target, path, content)
            if error is not None:
                last = traceback.format_exception_only(error)[-1].strip()[:300]
                found.append(f"case {case}, {target.source.name}: {last}")
                print(found[-1], flush=True)
                if only:
                    traceback.print_exception(error)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--number", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="+")
    args = parser.parse_args()
    started = time.process_time()
    obscured = fuzz(args.number, args.seed, list(TASKS), args.only)
    print(f"{len(obscured)} obscure errors, {time.process_time() - started:.0f} s.")
    sys.exit(bool(obscured))
