from argparse import ArgumentParser, Namespace
from pathlib import Path

from elmo_plugin.analysis.neighbours import IndexOptions, build_index
from elmo_plugin.bilm.pretraining.text import decoded, find_shards
from elmo_plugin.commands.bilm_arguments import (
    add_batch_arguments,
    add_bilm_arguments,
    chosen_bilm,
    counted,
    explained_limits,
    given_vocabulary,
)
from elmo_plugin.commands.command import add_decoding_errors
from elmo_plugin.util.files import expanded
from elmo_plugin.util.progress import progress

DESCRIPTION = """\
Write the index of a text: for each token and layer a vector of length 1, in half precision.

TEXT is tokenised text, one sentence per line, words separated by white space; plain or gzip, a
URL, a folder or a pattern in quotes. FOLDER, new or an index, receives plain files:
    index.json                     the biLM's fingerprint, layers, sizes
    layer_1.npy, ...               (number of contexts, dim), float16
    contexts.npy, sentences.npy    where each context is in text.txt
    text.txt                       the sentences that have contexts

Bytes per token: number of layers x dim x 2, plus 24 and its text; with the shipped biLM 1,055, with
the published one 4,127. RAM grows with --batch-size and the longest line only. If the command is
interrupted, even by kill -9 or a full disk, run it again: it continues after the lines done.
"""

EPILOG = """\
example:
    %(prog)s 'corpus/train-*.txt.gz' contexts
    %(prog)s text.txt contexts --words bank play spring
"""

STOPPED = "stopped. Run the same command again to continue."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="+", help="a sentence per line")
    parser.add_argument("folder", type=expanded, metavar="FOLDER", help="folder to write")
    parser.add_argument(
        "--layers",
        type=int,
        nargs="+",
        action="extend",
        metavar="N",
        help="numbers of the layers (default: all but 0, the token layer, in which all occurrences "
        "of a word have the same vector)",
    )
    parser.add_argument(
        "--words",
        nargs="+",
        action="extend",
        metavar="WORD",
        help="only occurrences of these words, case-sensitive",
    )
    add_decoding_errors(parser)
    add_bilm_arguments(parser)
    add_batch_arguments(parser)
    parser.add_argument("--force", action="store_true", help="replace the index in FOLDER")


def run(args: Namespace) -> str:
    options = IndexOptions(args.layers, args.words, args.batch_size)
    text = decoded(args.text, args.decoding_errors)
    # Before the biLM is loaded, to name a missing text first.
    whole = counted(find_shards(text))
    total = whole.num_lines if whole else None
    bilm = chosen_bilm(args, given_vocabulary(args))
    with explained_limits(args.folder, "The lines done are kept"):
        with progress("lines", total) as advance:
            summary = build_index(bilm, text, args.folder, options, args.force, advance)
    resumed = f" ({summary.num_resumed} of them earlier)" if summary.num_resumed else ""
    size = sum(path.stat().st_size for path in Path(args.folder).iterdir()) / 1e6
    return (
        f"{args.folder}: {summary.num_contexts} contexts of {summary.num_lines} lines{resumed}, "
        f"{size:.1f} MB."
    )
