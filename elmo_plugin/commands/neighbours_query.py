"""
Print the contexts of an index that are nearest to a word in its sentence, by cosine, per layer.

A SENTENCE must be tokenised like the indexed text, or raw with the same --tokenize, and has one
word in brackets. All contexts of the index are candidates, except those of the same sentence.

example:
    %(prog)s contexts 'They walked along the [bank] of the river .'
    %(prog)s contexts --file queries.txt --format jsonl > nearest.jsonl
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Iterator, List, Optional, Sequence

from elmo_plugin.analysis.neighbours import (
    ContextIndex,
    Neighbours,
    Query,
    find_neighbours,
    read_query,
    to_json,
)
from elmo_plugin.commands.arguments import PositiveInt, option, positional, tokenize_option
from elmo_plugin.commands.bilm_arguments import BilmArguments
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress
from elmo_plugin.util.text_files import numbered_lines


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
    format: str = option(
        "text, or a JSON object per query (words, position, and for each layer the contexts)",
        "text",
        choices=["text", "jsonl"],
    )


def run(args: Options) -> str:
    queries = list(_queries(args))
    if not queries:
        raise ConfigurationError(
            "Expected a sentence with one word in brackets, as in 'the [bank] of the river', or a "
            "file of such sentences (--file)."
        )
    index, bilm = ContextIndex(args.folder), args.load_bilm()
    with progress("contexts") as advance:
        found = find_neighbours(index, bilm, queries, args.top_k, advance)
        for query, neighbours in zip(queries, found):
            if args.format == "jsonl":
                answer = {**asdict(query), "layers": to_json(neighbours)}
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
        lines.append(f"  layer {layer}")
        lines += [
            f"    {each.cosine:.4f}  line {each.line}: {_marked(each.words, each.position)}"
            for each in contexts
        ]
    return "\n".join(lines)


def _marked(words: Sequence[str], position: int) -> str:
    return " ".join([*words[:position], f"[{words[position]}]", *words[position + 1 :]])
