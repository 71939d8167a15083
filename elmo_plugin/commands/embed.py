import os
from argparse import ArgumentParser, Namespace
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Optional, Tuple, Union

from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.pretraining.text import find_shards
from elmo_plugin.commands.bilm_arguments import (
    add_batch_arguments,
    add_bilm_arguments,
    chosen_bilm,
    explained_limits,
    given_vocabulary,
    positive_number,
    text_path,
)
from elmo_plugin.commands.command import (
    add_decoding_errors,
    add_ray_arguments,
    check_ray_arguments,
    say,
)
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
from elmo_plugin.util.atomic_write import UNFINISHED, resumable_file
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded, is_pipe
from elmo_plugin.util.progress import progress
from elmo_plugin.util.text_files import DecodedPath

DESCRIPTION = """\
Write the layers of a biLM over a text into one file of HDF5, safetensors or Parquet.

INPUT is tokenised text, one sentence per line, words separated by white space; plain or gzip, a
URL, or - for standard input. If it is a folder, each file in it gets a file of its own in the
folder OUTPUT, and what is finished is not done again.

The suffix of OUTPUT, file or folder, chooses the format: .safetensors, .parquet (needs the package
pyarrow), or anything else for HDF5. In HDF5 and safetensors, line i (from 0) becomes the dataset or
tensor str(i), float32:
    --all            (num_layers, num_tokens, dim), token layer first
    --top, --average (num_tokens, dim)
An empty line becomes an empty dataset. `sentence_to_index`, a JSON string (in safetensors its
bytes), maps each sentence, its words joined by one space, to its line. A sentence that occurs again
has a dataset for each of its lines; the map points to the first. A safetensors file has room for
about a million lines; more are refused before anything is written.

In Parquet, each token is a row: `sentence`, the number of its line from 0; `position` in the line,
from 0; `word`; and lists of dim numbers, with --all `layer_0` (the token layer), `layer_1` and so
on, else `vector`. An empty line has no rows.

The vectors of a line do not depend on the other lines. Attributes of an HDF5 file, metadata of
the others, name the biLM, the settings and the number of lines.

Bytes per token: number of layers (--top, --average: 1) x dim x 4; with --half x 2. For the
published biLM that is 12,288 for --all and 4,096 for --top. RAM grows with --batch-size,
--num-workers and the longest line, and with the distinct sentences unless --forget-sentences is
given or the format is Parquet.

If the command is interrupted, even by kill -9 or a full disk, run the same command again: it
continues after the lines that are done, which are kept in the folder OUTPUT.unfinished. From
these, OUTPUT is written at the end, so the disk needs space for the vectors twice. If it has
less, the command stops before it computes anything.
"""

EPILOG = """\
example:
    %(prog)s sentences.txt vectors.hdf5 --all
    python -c 'import h5py; print(h5py.File("vectors.hdf5")["0"].shape)'
    %(prog)s texts vectors.parquet --top --half --ray
"""

STOPPED = "stopped. Run the same command again to continue."

_Path = Union[str, os.PathLike]


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "input_file", metavar="INPUT", help="a sentence per line, or -; or a folder"
    )
    parser.add_argument("output_file", type=expanded, metavar="OUTPUT", help="file, or a folder")
    layers = parser.add_mutually_exclusive_group(required=True)
    for name, what in (
        ("all", "every layer"),
        ("top", "the last layer"),
        ("average", "the average of the layers"),
    ):
        layers.add_argument(
            f"--{name}", dest="layers", action="store_const", const=name, help=f"write {what}"
        )
    add_decoding_errors(parser)
    add_bilm_arguments(parser)
    add_batch_arguments(parser)
    _add_output_arguments(parser)


def run(args: Namespace) -> str:
    _check(args)
    is_folder = os.path.isdir(args.input_file)
    # Refuses a pipe before the text is counted.
    output = resumable_file(args.output_file)
    kept = f"The lines done are kept in {output}{UNFINISHED}"
    with explained_limits(args.output_file, "The files done are kept" if is_folder else kept):
        if is_folder:
            return _embed_folder(args)
        return f"{args.output_file}: {_report(_embed(args), args.output_file)}"


def _check(args: Namespace) -> None:
    in_processes = "--ray" if args.ray is not None else "--num-workers"
    if (args.num_workers or args.ray is not None) and args.cuda_device >= 0:
        raise ConfigurationError(
            f"{in_processes} is for CPUs. Leave it out, or leave out --cuda-device."
        )
    check_ray_arguments(args)
    is_folder = os.path.isdir(args.input_file)
    if is_folder and os.path.realpath(args.input_file) == os.path.realpath(args.output_file):
        raise ConfigurationError(
            f"{args.output_file} is the folder of the texts; name another output."
        )
    if args.ray is not None and not is_folder:
        raise ConfigurationError(
            f"--ray needs a folder of texts as INPUT, found {args.input_file}. Divide the text "
            "into files, each of which becomes a task."
        )
    format_of(Path(args.output_file)).check(_options(args))


def _options(args: Namespace) -> DumpOptions:
    return DumpOptions(
        layers=args.layers,
        dtype="float16" if args.half else "float32",
        compression=None if args.compression == "none" else args.compression,
        batch_size=args.batch_size,
        sentence_keys=args.use_sentence_keys,
        forget_sentences=args.forget_sentences,
    )


def _embed(args: Namespace) -> DumpSummary:
    options = _options(args)
    input_path = DecodedPath(text_path(args.input_file), args.decoding_errors)
    counted = _count(input_path, args.output_file, options)
    bilm = _load(args)
    total = None
    if counted is not None:
        total, num_tokens = counted
        num_bytes = vector_bytes(bilm, num_tokens, options)
        _say_size(num_bytes)
        # Twice, because OUTPUT is written from the unfinished files at the end.
        check_space(args.output_file, 2 * num_bytes)
    with progress("sentences", total) as advance:
        return dump_embeddings(
            bilm,
            input_path,
            args.output_file,
            options,
            force=args.force,
            on_progress=advance,
            num_workers=args.num_workers,
        )


def _embed_folder(args: Namespace) -> str:
    texts = find_shards(DecodedPath(args.input_file, args.decoding_errors))
    outputs = shard_outputs(texts, args.output_file)
    options = _options(args)
    # The workers of Ray load their own biLM, and the vectors of its vocabulary with it.
    bilm = _load(args) if args.ray is None else chosen_bilm(args)
    sizes = {}
    for text, output in outputs.items():
        is_finished = output.exists() and not args.force
        # An error is the outcome of this text, below, and does not stop the others.
        with suppress(ConfigurationError, OSError, ValueError):
            counted = None if is_finished else _count(text, output, options)
            sizes[text] = 0 if counted is None else vector_bytes(bilm, counted[1], options)
    num_bytes = sum(sizes.values())
    _say_size(num_bytes)
    check_space(args.output_file, num_bytes + max(sizes.values(), default=0), outputs.values())
    if args.ray is None:
        outcomes = dump_shards(bilm, outputs, options, args.force, args.num_workers)
    else:
        # `func` is this module, which cannot be sent to a worker.
        sent = Namespace(**{name: value for name, value in vars(args).items() if name != "func"})
        load, address = partial(_load, sent), args.ray or None
        outcomes = dump_shards_with_ray(load, outputs, options, args.force, address, args.cpus or 1)
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
    return f"{args.output_file}: {len(outputs)} files."


def _load(args: Namespace) -> Bilm:
    return chosen_bilm(args, given_vocabulary(args))


def _say_size(num_bytes: int) -> None:
    say(f"{num_bytes / 1e6:,.1f} MB of vectors to write.")


def _count(path: _Path, output_path: _Path, options: DumpOptions) -> Optional[Tuple[int, int]]:
    """The numbers of lines and tokens, or `None` for a pipe, which can be read only once."""
    return None if is_pipe(path) else count_text(path, output_path, options)


def _report(summary: DumpSummary, output_path: _Path) -> str:
    size = Path(output_path).stat().st_size / 1e6
    resumed = f" ({summary.num_resumed} of them earlier)" if summary.num_resumed else ""
    left_out = summary.num_lines - summary.num_datasets
    without = f" {left_out} lines were empty or repeated and have no key." if left_out else ""
    return (
        f"{summary.num_lines} lines{resumed}, {summary.num_tokens} tokens, {size:.1f} MB.{without}"
    )


def _add_output_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--half", action="store_true", help="write float16: half the size")
    parser.add_argument(
        "--compression",
        choices=["none", "gzip", "lzf", "zstd"],
        default="none",
        help="compress losslessly: gzip for HDF5, or lzf, which is faster and for h5py only; zstd "
        "for Parquet; safetensors has none (default: none)",
    )
    parser.add_argument(
        "--forget-sentences",
        action="store_true",
        help="leave out `sentence_to_index`, which Parquet never has",
    )
    parser.add_argument(
        "--use-sentence-keys",
        action="store_true",
        help="name each dataset by its sentence instead of its line, with '\u2215' (U+2215) for "
        "'/', '\u2400' (U+2400) for NUL and '\u2024' (U+2024) for a lone full stop; a repeated "
        "sentence is written once, an empty one not at all. Leaves out `sentence_to_index`. Not "
        "for Parquet, where words are a column",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace OUTPUT, or unfinished work that was begun with other options",
    )
    parser.add_argument(
        "--num-workers",
        type=positive_number,
        default=0,
        metavar="N",
        help="compute in N processes, which share the cores; the same file as one process with as "
        "many threads writes (default: this process alone)",
    )
    add_ray_arguments(parser, "compute each text of a folder as a task")
