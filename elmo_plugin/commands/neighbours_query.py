import json
import re
import sys
from argparse import ArgumentParser, Namespace
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Iterator, Sequence

from elmo_plugin.analysis.neighbours import (
    ContextIndex,
    Neighbours,
    Query,
    find_neighbours,
    read_query,
)
from elmo_plugin.commands.bilm_arguments import (
    add_bilm_arguments,
    chosen_bilm,
    explained_limits,
    positive_number,
)
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress
from elmo_plugin.util.text_files import numbered_lines

DESCRIPTION = """\
Print the contexts of an index that are nearest to a word in its sentence, by cosine, per layer.

A SENTENCE must be tokenised like the indexed text, with one word in brackets. All contexts of the
index are candidates (with --same-word, those of the same word), except those of the same sentence.
The search is exact. The index is read once for up to 512 queries; a result does not depend on the
other queries.
"""

EPILOG = """\
example:
    %(prog)s contexts 'They walked along the [bank] of the river .'
    %(prog)s contexts --file queries.txt --format markdown > table.md
"""

STOPPED = "stopped."

# Words before and after the marked one in a cell of a table.
_WORDS_AROUND = 5
_MARKDOWN = re.compile(r"([\\`*_|<>\[\]])")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("folder", metavar="FOLDER", help="what `build` wrote")
    sentences = parser.add_argument(
        "sentences", metavar="SENTENCE", nargs="+", help="with one word in brackets"
    )
    # May be left out. With `nargs="*"`, an option before them would end their list.
    sentences.required = False
    parser.add_argument("--file", help="sentences, one per line; - for standard input")
    parser.add_argument(
        "--top-k",
        type=positive_number,
        default=5,
        metavar="K",
        help="contexts per layer (default: 5)",
    )
    parser.add_argument(
        "--same-word", action="store_true", help="only contexts of the same word, case-sensitive"
    )
    parser.add_argument(
        "--format",
        choices=["text", "jsonl", "markdown"],
        default="text",
        help="text; a JSON object per query (words, position, and for each layer the contexts); or "
        "a table of Markdown (default: text)",
    )
    add_bilm_arguments(parser)


def run(args: Namespace) -> str:
    queries = list(_queries(args))
    if not queries:
        raise ConfigurationError(
            "Expected a sentence with one word in brackets, as in 'the [bank] of the river', or a "
            "file of such sentences (--file)."
        )
    show = {"text": _as_text, "jsonl": _as_json, "markdown": _as_row}[args.format]
    with (
        closing(ContextIndex(Path(args.folder))) as index,
        explained_limits("the output", "Nothing is kept"),
        progress("contexts") as advance,
    ):
        bilm = chosen_bilm(args)
        found = find_neighbours(index, bilm, queries, args.top_k, args.same_word, advance)
        for number, (query, neighbours) in enumerate(zip(queries, found)):
            if args.format == "markdown" and number == 0:
                print(_head(neighbours))
            print(show(query, neighbours))
    return ""


def _queries(args: Namespace) -> Iterator[Query]:
    for sentence in args.sentences or ():
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
    return json.dumps({**asdict(query), "layers": neighbours.to_json()}, ensure_ascii=False)


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
