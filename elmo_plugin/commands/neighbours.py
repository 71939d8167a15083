import json
import re
import sys
from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from contextlib import closing
from dataclasses import asdict
from itertools import chain, tee
from pathlib import Path
from typing import Iterator, Sequence

from elmo_plugin.analysis.neighbours import (
    ContextIndex,
    IndexOptions,
    Neighbours,
    Query,
    build_index,
    find_neighbours,
    read_query,
)
from elmo_plugin.bilm.pretraining.text import find_shards
from elmo_plugin.commands.bilm_arguments import (
    add_batch_arguments,
    add_bilm_arguments,
    chosen_bilm,
    count_lines,
    explained_limits,
    given_vocabulary,
    positive_number,
)
from elmo_plugin.commands.command import add_decoding_errors, add_progress_argument
from elmo_plugin.corpora.files import numbered_lines
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress

DESCRIPTION = """\
Find the nearest contexts of a word in its sentence, layer by layer, as in table 4 of the paper.

    build   writes the vectors of all tokens of a text, or of some words, into a folder
    query   finds the contexts in it whose vectors are nearest to that of a marked word

`COMMAND --help` describes each.
"""

EPILOG = """\
example:
    %(prog)s build text.txt contexts
    %(prog)s query contexts 'They walked along the [bank] of the river .'
"""

STOPPED = "stopped. Give the same command again; what was built is kept."

_BUILD = """\
Write the index of a text: for each token and layer a vector of length 1, in half precision.

TEXT is tokenised text, one sentence per line, words separated by white space; plain or gzip, a
URL, a folder or a pattern in quotes. FOLDER, new or an index, receives plain files:
    index.json                     the biLM's fingerprint, layers, sizes
    layer_1.npy, ...               (number of contexts, dim), float16
    contexts.npy, sentences.npy    where each context is in text.txt
    text.txt                       the sentences that have contexts

Bytes per token: number of layers x dim x 2, 24 and its text; with the shipped biLM 1,055, with the
published one 4,127. RAM grows with --batch-size and the longest line only. If the command is
interrupted, even by kill -9 or a full disk, give it again: it continues after the lines done.
"""

_BUILD_EPILOG = """\
example:
    %(prog)s 'corpus/train-*.txt.gz' contexts
    %(prog)s text.txt contexts --words bank play spring
"""

_QUERY = """\
Print the contexts of an index that are nearest to a word in its sentence, by cosine, per layer.

A SENTENCE is tokenised as the indexed text is, with one word in brackets. All tokens of the text
are candidates, except those of the same sentence. The search is exact. Queries that are given
together share the pass over the index, 1,024 at a time; a result does not depend on the others.
"""

_QUERY_EPILOG = """\
example:
    %(prog)s contexts 'They walked along the [bank] of the river .'
    %(prog)s contexts --file queries.txt --markdown > table.md
"""

# Words before and after the marked one in a cell of a table.
_WORDS_AROUND = 5
_MARKDOWN = re.compile(r"([\\`*_|<>\[\]])")


def add_arguments(parser: ArgumentParser) -> None:
    steps = parser.add_subparsers(title="commands", metavar="COMMAND", dest="step", required=True)
    build = steps.add_parser(
        "build",
        help="write the vectors of a text into a folder",
        description=_BUILD,
        epilog=_BUILD_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    query = steps.add_parser(
        "query",
        help="find the nearest contexts of a word in a sentence",
        description=_QUERY,
        epilog=_QUERY_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
    )
    _add_build_arguments(build)
    _add_query_arguments(query)


def run(args: Namespace) -> str:
    return _build(args) if args.step == "build" else _query(args)


def _build(args: Namespace) -> str:
    options = IndexOptions(args.layers, args.words, args.batch_size, args.decoding_errors)
    # Before the biLM is loaded, to name a missing text first.
    counts = [count_lines(path, args.decoding_errors) for path in find_shards(args.text)]
    total = None if None in counts else sum(count or 0 for count in counts)
    bilm = chosen_bilm(args, given_vocabulary(args))
    with explained_limits(args.folder, "The lines done are kept"):
        with progress("lines", total, args.file_friendly_logging) as advance:
            summary = build_index(bilm, args.text, args.folder, options, args.force, advance)
    resumed = f" ({summary.num_resumed} of them earlier)" if summary.num_resumed else ""
    size = sum(path.stat().st_size for path in Path(args.folder).iterdir()) / 1e6
    return (
        f"{args.folder}: {summary.num_contexts} contexts of {summary.num_lines} lines{resumed}, "
        f"{size:.1f} MB."
    )


def _query(args: Namespace) -> str:
    queries = _queries(args)
    first = next(queries, None)
    if first is None:
        raise ConfigurationError(
            "Expected a sentence with one word in brackets, as in 'the [bank] of the river', or a "
            "file of such sentences (--file)."
        )
    to_show, to_find = tee(chain([first], queries))
    with closing(ContextIndex(Path(args.folder))) as index:
        with progress("contexts", as_lines=args.file_friendly_logging) as advance:
            found = find_neighbours(
                index, chosen_bilm(args), to_find, args.number, args.same_word, advance
            )
            for number, (query, neighbours) in enumerate(zip(to_show, found)):
                if args.format is _as_row and number == 0:
                    print(_head(neighbours))
                print(args.format(query, neighbours))
    return ""


def _queries(args: Namespace) -> Iterator[Query]:
    for sentence in args.sentences:
        yield read_query(sentence)
    if args.file is not None:
        is_pipe = args.file == "-"
        source = open(sys.stdin.fileno(), "rb", closefd=False) if is_pipe else args.file
        name = "standard input" if is_pipe else args.file
        for number, line in numbered_lines(source, newline="\n"):
            if line.strip():
                yield read_query(line, f"{name}:{number}")


def _as_text(query: Query, neighbours: Neighbours) -> str:
    lines = [_marked(query.words, query.position)]
    for layer, contexts in neighbours.items():
        lines.append(f"  layer {layer}" + ("" if contexts else ": no context"))
        lines += [
            f"    {context.cosine:.4f}  line {context.line}: "
            f"{_marked(context.words, context.position)}"
            for context in contexts
        ]
    return "\n".join(lines)


def _as_json(query: Query, neighbours: Neighbours) -> str:
    layers = {
        str(layer): [asdict(context) for context in contexts]
        for layer, contexts in neighbours.items()
    }
    return json.dumps({**asdict(query), "layers": layers}, ensure_ascii=False)


def _as_row(query: Query, neighbours: Neighbours) -> str:
    cells = [_excerpt(query.words, query.position)]
    for contexts in neighbours.values():
        cells.append(" · ".join(_excerpt(each.words, each.position) for each in contexts))
    return f"| {' | '.join(cells)} |"


def _head(neighbours: Neighbours) -> str:
    cells = ["in the sentence", *(f"nearest in layer {layer}" for layer in neighbours)]
    return f"| {' | '.join(cells)} |\n|{' --- |' * len(cells)}"


def _marked(words: Sequence[str], position: int) -> str:
    return " ".join([*words[:position], f"[{words[position]}]", *words[position + 1 :]])


def _excerpt(words: Sequence[str], position: int) -> str:
    """In Markdown: the words around the marked one, which is bold."""
    start, end = max(0, position - _WORDS_AROUND), position + _WORDS_AROUND + 1
    shown = [_MARKDOWN.sub(r"\\\1", word) for word in words[start:end]]
    shown[position - start] = f"**{shown[position - start]}**"
    return " ".join(["…"] * (start > 0) + shown + ["…"] * (end < len(words)))


def _add_build_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="+", help="a sentence per line")
    parser.add_argument("folder", metavar="FOLDER", help="folder to write")
    parser.add_argument(
        "--layers",
        type=int,
        nargs="+",
        metavar="N",
        help="numbers of the layers (default: all but 0, the token layer, in which all occurrences "
        "of a word have the same vector)",
    )
    parser.add_argument(
        "--words", nargs="+", metavar="WORD", help="only occurrences of these words, spelled so"
    )
    add_decoding_errors(parser)
    add_bilm_arguments(parser)
    add_batch_arguments(parser)
    parser.add_argument("--force", action="store_true", help="replace the index in FOLDER")
    add_progress_argument(parser)


def _add_query_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="what `build` wrote")
    parser.add_argument(
        "sentences", metavar="SENTENCE", nargs="*", help="with one word in brackets"
    )
    parser.add_argument("--file", help="sentences, one per line; - for standard input")
    parser.add_argument(
        "--number", type=positive_number, default=5, metavar="K", help="contexts per layer"
    )
    parser.add_argument(
        "--same-word", action="store_true", help="only contexts of the same word, spelled so"
    )
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const=_as_json,
        default=_as_text,
        help="print a JSON object per query: words, position, and for each layer the contexts",
    )
    formats.add_argument(
        "--markdown", dest="format", action="store_const", const=_as_row, help="print a table"
    )
    add_bilm_arguments(parser)
    add_progress_argument(parser)
