import os
import sys
from argparse import ArgumentParser, Namespace
from typing import Optional, Tuple

from elmo_plugin.commands.bilm_arguments import (
    add_batch_arguments,
    add_bilm_arguments,
    chosen_bilm,
    explained_limits,
    given_vocabulary,
    positive_number,
)
from elmo_plugin.commands.command import add_decoding_errors, add_progress_argument
from elmo_plugin.corpora.sentence_per_line import read_sentences
from elmo_plugin.elmo.dump.dump import DumpOptions, DumpSummary, check_space, dump_embeddings
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress

DESCRIPTION = """\
Write the layers of a biLM over a text into one HDF5 file.

INPUT is tokenised text, one sentence per line, words separated by white space; plain or gzip, a
URL, or - for standard input. Line i (from 0) becomes the dataset str(i), float32:
    --all            (num_layers, num_tokens, dim), token layer first
    --top, --average (num_tokens, dim)
An empty line becomes an empty dataset. The vectors of a line do not depend on the other lines.

The file also holds `sentence_to_index`, a JSON string: from each sentence, its words joined by one
space, to its line. A sentence that occurs again has a dataset for each of its lines; the map
points to the first. Attributes of the file name the biLM, the settings and the number of lines.

Bytes per token: number of layers (--top, --average: 1) x dim x 4; with --half x 2. For the
published biLM that is 12,288 for --all and 4,096 for --top. RAM grows with --batch-size,
--num-workers and the longest line, and with the distinct sentences unless --forget-sentences is
given.

If the command is interrupted, even by kill -9 or a full disk, give the same command again: it
continues after the lines that are done, which are kept in the folder OUTPUT.unfinished. From
these, OUTPUT is written at the end, so the disk needs space for the vectors twice. If it has not
that much, nothing is begun.
"""

EPILOG = """\
example:
    %(prog)s sentences.txt vectors.hdf5 --all
    python -c 'import h5py; print(h5py.File("vectors.hdf5")["0"].shape)'
"""

STOPPED = "stopped. Give the same command again to continue."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("input_file", metavar="INPUT", help="a sentence per line, or -")
    parser.add_argument("output_file", metavar="OUTPUT", help="the HDF5 file to write")
    layers = parser.add_mutually_exclusive_group(required=True)
    for name, what in (
        ("all", "every layer"),
        ("top", "the top layer"),
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
    kept = f"The lines done are kept in {args.output_file}.unfinished"
    with explained_limits(args.output_file, kept):
        return _report(_dump(args), args)


def _dump(args: Namespace) -> DumpSummary:
    if args.num_workers and args.cuda_device >= 0:
        raise ConfigurationError(
            "--num-workers is for CPUs. Leave it out, or leave out --cuda-device."
        )
    options = DumpOptions(
        layers=args.layers,
        dtype="float16" if args.half else "float32",
        compression=None if args.compression == "none" else args.compression,
        batch_size=args.batch_size,
        sentence_keys=args.use_sentence_keys,
        forget_sentences=args.forget_sentences,
        decoding_errors=args.decoding_errors,
    )
    input_path = "/dev/stdin" if args.input_file == "-" else args.input_file
    counted = _count(input_path, args.decoding_errors)
    bilm = chosen_bilm(args, given_vocabulary(args))
    total = None
    if counted is not None:
        total, num_tokens = counted
        size = check_space(bilm, num_tokens, args.output_file, options)
        print(f"{size / 1e6:,.1f} MB of vectors to write.", file=sys.stderr, flush=True)
    with progress("sentences", total, args.file_friendly_logging) as advance:
        return dump_embeddings(
            bilm,
            input_path,
            args.output_file,
            options,
            force=args.force,
            on_progress=advance,
            num_workers=args.num_workers,
        )


def _count(path: str, errors: str) -> Optional[Tuple[int, int]]:
    """The numbers of lines and tokens, or `None` for a pipe, which can be read only once."""
    if os.path.exists(path) and not os.path.isfile(path):
        return None
    num_lines = num_tokens = 0
    for _, words in read_sentences(path, errors=errors):
        num_lines, num_tokens = num_lines + 1, num_tokens + len(words)
    return num_lines, num_tokens


def _report(summary: DumpSummary, args: Namespace) -> str:
    size = os.path.getsize(args.output_file) / 1e6
    resumed = f" ({summary.num_resumed} of them earlier)" if summary.num_resumed else ""
    left_out = summary.num_lines - summary.num_datasets
    without = f" {left_out} lines were empty or repeated and have no key." if left_out else ""
    return (
        f"{args.output_file}: {summary.num_lines} lines{resumed}, {summary.num_tokens} tokens, "
        f"{size:.1f} MB.{without}"
    )


def _add_output_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--half", action="store_true", help="write float16: half the size")
    parser.add_argument(
        "--compression",
        choices=["none", "gzip", "lzf"],
        default="none",
        help="compress losslessly; every HDF5 reader knows gzip, lzf is faster and for h5py only",
    )
    parser.add_argument(
        "--forget-sentences", action="store_true", help="leave out `sentence_to_index`"
    )
    parser.add_argument(
        "--use-sentence-keys",
        action="store_true",
        help="name each dataset by its sentence instead of its line, with '\u2215' (U+2215) for "
        "'/', '\u2400' (U+2400) for NUL and '\u2024' (U+2024) for a lone full stop; a repeated "
        "sentence is written once, an empty one not at all. Leaves out `sentence_to_index`",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace OUTPUT, or what was begun with other arguments",
    )
    parser.add_argument(
        "--num-workers",
        type=positive_number,
        default=0,
        metavar="N",
        help="compute in N processes, which share the cores; the same file as one process with as "
        "many threads writes (default: this process alone)",
    )
    add_progress_argument(parser)
