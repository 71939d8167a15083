"""
Print the contexts of an index that are nearest to a word in its sentence, by cosine, per layer.

A SENTENCE must be tokenised like the indexed text, or raw with the same --tokenize, and has one
word in brackets. All contexts of the
index are candidates (with --same-word, those of the same word), except those of the same sentence.

example:
    %(prog)s contexts 'They walked along the [bank] of the river .'
    %(prog)s contexts --file queries.txt --format markdown > table.md
"""

import json
import re
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Iterable, Iterator, List, Optional, Sequence, Tuple

from elmo_plugin.analysis.neighbours import (
    ContextIndex,
    Neighbours,
    Query,
    find_neighbours,
    read_query,
)
from elmo_plugin.commands.arguments import PositiveInt, flag, option, positional, tokenize_option
from elmo_plugin.commands.bilm_arguments import BilmArguments
from elmo_plugin.commands.tables import markdown_table
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress
from elmo_plugin.util.text_files import numbered_lines

# Words before and after the marked one in a cell of a table.
_WORDS_AROUND = 5
_MARKDOWN = re.compile(r"([\\`*_<>\[\]])")


@dataclass(kw_only=True)
class Options(BilmArguments):
    folder: Path = positional("FOLDER", "what `build` wrote")
    # With `nargs="*"`, an option before them would end their list.
    sentences: Optional[List[str]] = positional(
        "SENTENCE", "with one word in brackets", required=False
    )
    file: Optional[str] = option("sentences, one per line")
    tokenize: Optional[str] = tokenize_option("sentences are raw: split them into words")
    top_k: PositiveInt = option("contexts per layer", 5, metavar="K")
    same_word: bool = flag("only contexts of the same word, case-sensitive")
    format: str = option(
        "text; a JSON object per query (words, position, and for each layer the contexts); or "
        "a table of Markdown",
        "text",
        choices=["text", "jsonl", "markdown"],
    )


def run(args: Options) -> str:
    queries = list(_queries(args))
    if not queries:
        raise ConfigurationError(
            "Expected a sentence with one word in brackets, as in 'the [bank] of the river', or a "
            "file of such sentences (--file)."
        )
    with closing(ContextIndex(args.folder)) as index, progress("contexts") as advance:
        bilm = args.load_bilm()
        found = find_neighbours(index, bilm, queries, args.top_k, args.same_word, advance)
        answers = zip(queries, found)
        if args.format == "markdown":
            return _as_table(answers)
        for query, neighbours in answers:
            if args.format == "jsonl":
                answer = {**asdict(query), "layers": neighbours.to_json()}
                print(json.dumps(answer, ensure_ascii=False))
            else:
                print(_as_text(query, neighbours))
    return ""


def _queries(args: Options) -> Iterator[Query]:
    for sentence in args.sentences or ():
        yield read_query(sentence, tokenize=args.tokenize)
    if args.file is not None:
        for number, line in numbered_lines(args.file, newline="\n"):
            if line.strip():
                yield read_query(line, f"{args.file}:{number}", args.tokenize)


def _as_text(query: Query, neighbours: Neighbours) -> str:
    lines = [_marked(query.words, query.position)]
    for layer, contexts in neighbours.items():
        lines.append(f"  layer {layer}" + ("" if contexts else ": no context"))
        lines += [
            f"    {each.cosine:.4f}  line {each.line}: {_marked(each.words, each.position)}"
            for each in contexts
        ]
    return "\n".join(lines)


def _as_table(answers: Iterable[Tuple[Query, Neighbours]]) -> str:
    head, rows = ["in the sentence"], []
    for query, neighbours in answers:
        head = [head[0], *(f"nearest in layer {layer}" for layer in neighbours)]
        cells = [_excerpt(query.words, query.position)]
        for contexts in neighbours.values():
            cells.append(" · ".join(_excerpt(each.words, each.position) for each in contexts))
        rows.append(cells)
    return markdown_table(head, rows, num_left=len(head))


def _marked(words: Sequence[str], position: int) -> str:
    return " ".join([*words[:position], f"[{words[position]}]", *words[position + 1 :]])


def _excerpt(words: Sequence[str], position: int) -> str:
    """The words around the marked one, which is bold, as Markdown."""
    start, end = max(0, position - _WORDS_AROUND), position + _WORDS_AROUND + 1
    shown = [_MARKDOWN.sub(r"\\\1", word) for word in words[start:end]]
    shown[position - start] = f"**{shown[position - start]}**"
    return " ".join(["…"] * (start > 0) + shown + ["…"] * (end < len(words)))
