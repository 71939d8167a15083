"""
Count the words of a text and write the ones a biLM is to predict, most frequent first.

TEXT is tokenised text, one sentence per line, words separated by white space; plain or gzip, a
URL, a folder or a pattern in quotes. OUT receives one word<TAB>count per line: <S> and </S>, once
per sentence; <UNK>, for every word that is left out; then the words in descending order of their
counts. RAM grows only with the number of distinct words.

example:
    %(prog)s 'corpus/train-*.txt.gz' vocabulary.txt --size 100000
and in the configuration of the biLM:
    "vocabulary": { "type": "elmo-bilm", "file": "vocabulary.txt" }
"""

from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional

from elmo_plugin.bilm.pretraining.text import decoded, find_shards
from elmo_plugin.bilm.vocabulary_file import count_and_choose, write_vocabulary
from elmo_plugin.commands.arguments import decoding_errors_option, flag, option, positional
from elmo_plugin.commands.command import check_not_input
from elmo_plugin.util.atomic_write import check_output
from elmo_plugin.util.progress import progress

STOPPED = "stopped, nothing was written."


@dataclass(kw_only=True)
class Options:
    text: List[str] = positional("TEXT", "a sentence per line")
    output_file: Path = positional("OUT", "the file to write")
    size: Optional[int] = option(
        "at most N lines, <S>, </S> and <UNK> included (default: all words)"
    )
    min_count: int = option("leave out words that occur fewer than K times", 1, metavar="K")
    decoding_errors: str = decoding_errors_option()
    force: bool = flag("replace OUT")


def run(args: Options) -> str:
    # Checked before the text is read, which may take hours.
    out = args.output_file
    shards = find_shards(decoded(args.text, args.decoding_errors))
    check_not_input(out, shards)
    check_output(out, args.force)
    with progress("lines") as advance:
        entries = count_and_choose(shards, args.size, args.min_count, advance)
    write_vocabulary(entries, out)
    # Entries of a counted text always have counts.
    num_sentences, _, num_unknown, *others = [count or 0 for _, count in entries]
    num_tokens = num_unknown + sum(others)
    return (
        f"{out}: {len(entries)} words. Of {num_tokens} tokens in {num_sentences} sentences they "
        f"cover {1 - num_unknown / num_tokens:.2%}."
    )
