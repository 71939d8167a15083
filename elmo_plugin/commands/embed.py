"""
Write the layers of a biLM over a text into one file of HDF5, safetensors or Parquet.

INPUT is tokenised text, one sentence per line, words separated by white space, or raw text with
--tokenize; plain or gzip, a URL, or - for standard input. If it is a folder, each file in it gets
a file of its own in the folder OUTPUT, and what is finished is not done again.

The suffix of OUTPUT, file or folder, chooses the format: .safetensors, .parquet (needs the package
pyarrow), or anything else for HDF5. In HDF5 and safetensors, line i (from 0) becomes the dataset or
tensor str(i), float32:
    --all            (num_layers, num_tokens, dim), token layer first
    --layers 0,2     (2, num_tokens, dim)
    --top, --average (num_tokens, dim)
With --pool, a line has one vector instead of one per token: the shapes lack num_tokens.
`sentence_to_index`, a JSON string, maps each sentence, its words joined by one space, to its line.
In Parquet, each token is a row, or with --pool each line. docs/commands.md describes the formats.

Bytes per token, or with --pool per line: number of layers (--top, --average: 1) x dim x 4; with
--half x 2. RAM grows with --batch-size, --num-workers and the longest line, and with the distinct
sentences unless --forget-sentences is given or the format is Parquet.

If the command is interrupted, even by kill -9 or a full disk, run the same command again: it
continues after the lines that are done, which are kept in the folder OUTPUT.unfinished. The disk
needs space for the vectors twice.

example:
    %(prog)s sentences.txt vectors.hdf5 --all
    python -c 'import h5py; print(h5py.File("vectors.hdf5")["0"].shape)'
    %(prog)s texts vectors.parquet --top --half --ray
    %(prog)s raw.txt vectors.hdf5 --all --tokenize de
    %(prog)s raw.txt vectors.parquet --layers 1,2 --pool mean --tokenize en
"""

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Iterable, List, Optional

from elmo_plugin.bilm.pretraining.text import find_shards
from elmo_plugin.commands.arguments import (
    AT_MOST_ONE,
    EXACTLY_ONE,
    PositiveInt,
    flag,
    option,
    positional,
)
from elmo_plugin.commands.bilm_arguments import TextBilmArguments, text_path
from elmo_plugin.commands.command import say
from elmo_plugin.elmo.store.dump import (
    DumpOptions,
    DumpSummary,
    check_space,
    count_text,
    dump_embeddings,
    vector_bytes,
)
from elmo_plugin.elmo.store.formats import format_of
from elmo_plugin.elmo.store.shards import dump_shards, dump_shards_with_ray, shard_outputs
from elmo_plugin.util.atomic_write import resumable_file
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import is_pipe
from elmo_plugin.util.progress import progress
from elmo_plugin.util.text_files import POOLS

STOPPED = "stopped. Run the same command again to continue."


@dataclass(kw_only=True)
class Options(TextBilmArguments):
    input_file: str = positional("INPUT", "a sentence per line, or -; or a folder")
    output_file: Path = positional("OUTPUT", "file, or a folder")
    all: bool = flag("write every layer", EXACTLY_ONE)
    top: bool = flag("write the last layer", EXACTLY_ONE)
    average: bool = flag("write the average of the layers", EXACTLY_ONE)
    layers: Optional[str] = option(
        "write these layers, by their numbers with commas; 0 is the token layer",
        None,
        EXACTLY_ONE,
        metavar="N,N",
    )
    pool: Optional[str] = option(
        "write one vector per line: the mean or maximum over its tokens, or first_last, the states "
        "of both directions that have read the whole line",
        choices=POOLS,
    )
    half: bool = flag("write float16: half the size")
    compression: Optional[str] = option(
        "compress losslessly: gzip for HDF5, or lzf, which is faster and for h5py only; zstd "
        "for Parquet; safetensors has none (default: none)",
        choices=["gzip", "lzf", "zstd"],
    )
    forget_sentences: bool = flag("leave out `sentence_to_index`, which Parquet never has")
    force: bool = flag("replace OUTPUT, or unfinished work that was begun with other options")
    num_workers: PositiveInt = option(
        "compute in N processes, which share the cores; the same file as one process with as "
        "many threads writes (default: this process alone)",
        0,
        AT_MOST_ONE,
    )
    ray: Optional[str] = option(
        "compute each text of a folder as a task of Ray, on a cluster or (without ADDRESS) on this "
        "machine",
        None,
        AT_MOST_ONE,
        metavar="ADDRESS",
        nargs="?",
        const="",
    )
    cpus: float = option("CPU cores reserved for each Ray task", 1.0)

    def for_dump(self) -> DumpOptions:
        named = "all" if self.all else "top" if self.top else "average"
        return DumpOptions(
            layers=named if self.layers is None else self.layers,
            dtype="float16" if self.half else "float32",
            compression=self.compression,
            batch_size=self.batch_size,
            forget_sentences=self.forget_sentences,
            pool=self.pool,
        )


def run(args: Options) -> str:
    is_folder = os.path.isdir(args.input_file)
    has_ray = args.ray is not None
    if (has_ray or args.num_workers) and args.device != "cpu":
        raise ConfigurationError(
            "--ray and --num-workers are for CPUs. Leave them out, or leave out --device."
        )
    if has_ray and not is_folder:
        raise ConfigurationError(
            f"--ray needs a folder of texts as INPUT, found {args.input_file}. Divide the text "
            "into files, each of which becomes a task."
        )
    if is_folder and os.path.realpath(args.input_file) == os.path.realpath(args.output_file):
        raise ConfigurationError(
            f"{args.output_file} is the folder of the texts; name another output."
        )
    format_of(args.output_file).check(args.for_dump())
    # Refuses a pipe before the text is counted.
    resumable_file(args.output_file)
    report = _embed_folder(args) if is_folder else _embed(args)
    return f"{args.output_file}: {report}"


def _embed(args: Options) -> str:
    options, output = args.for_dump(), args.output_file
    (text,) = args.decoded(text_path(args.input_file))
    # A pipe can be read only once.
    counts = None if is_pipe(text) else count_text(text, output)
    bilm = args.load_bilm()
    if counts is not None:
        _check_space(args, [vector_bytes(bilm, counts, options)], [output])
    with progress("sentences", counts and counts[0]) as advance:
        summary = dump_embeddings(
            bilm, text, output, options, args.force, advance, args.num_workers
        )
    return _report(summary, output)


def _embed_folder(args: Options) -> str:
    texts = find_shards(args.decoded(args.input_file))
    outputs = shard_outputs(texts, args.output_file)
    options = args.for_dump()
    bilm = args.load_bilm()
    sizes = [0]
    for text, output in outputs.items():
        # An error is the outcome of this text, below, and does not stop the others.
        with suppress(ConfigurationError, OSError, ValueError):
            if not is_pipe(text) and (args.force or not output.exists()):
                sizes.append(vector_bytes(bilm, count_text(text, output), options))
    _check_space(args, sizes, outputs.values())
    if args.ray is None:
        outcomes = dump_shards(bilm, outputs, options, args.force, args.num_workers)
    else:
        ray = (args.ray or None, args.cpus)
        outcomes = dump_shards_with_ray(args.load_bilm, outputs, options, args.force, *ray)
    failed = 0
    for number, (text, outcome) in enumerate(outcomes, start=1):
        failed += isinstance(outcome, Exception)
        said = outcome if isinstance(outcome, Exception) else _report(outcome, outputs[text])
        say(f"{number} of {len(outputs)}: {text}: {said}")
    if failed:
        raise ConfigurationError(
            f"{failed} of {len(outputs)} texts failed, see above. The same command leaves out "
            "those that are finished."
        )
    return f"{len(outputs)} files."


def _check_space(args: Options, sizes: List[int], outputs: Iterable[Path]) -> None:
    say(f"{sum(sizes) / 1e6:,.1f} MB of vectors to write.")
    # Each file is written from its unfinished folder at the end, which is then removed.
    check_space(list(outputs), sum(sizes) + max(sizes))


def _report(summary: DumpSummary, output: Path) -> str:
    size = output.stat().st_size / 1e6
    resumed = f" ({summary.num_resumed} of them earlier)" if summary.num_resumed else ""
    return f"{summary.num_lines} lines{resumed}, {summary.num_tokens} tokens, {size:.1f} MB."
