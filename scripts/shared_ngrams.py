"""
Counts the parts of tasks' corpora that share 13 words in a row with a text, such as a biLM's.

    python scripts/shared_ngrams.py $ELMO_DATA/ner/test.conll $ELMO_DATA/squad/dev-v1.1.json \\
        --text $ELMO_DATA/lm/large/train-*.txt.gz

Parts are pairs of SNLI, paragraphs of SQuAD, and sentences of other corpora, whose kind is in the
file name: see `task_text.py`. The text is tokenised, with a sentence per line. The 13 words are in
one sentence on both sides. Words are runs of letters and digits, with their case: tokenisers that
split punctuation or hyphens differently, as those of SQuAD and of a biLM do, hide nothing. RAM
grows with the corpora, not with the text.
"""

import argparse
import re
from collections import defaultdict
from typing import DefaultDict, Dict, Iterable, Iterator, Set, Tuple

from task_text import read_parts

from elmo_plugin.corpora.sentence_per_line import read_sentences
from elmo_plugin.corpora.tokenizer import plain_word
from elmo_plugin.util.progress import progress

NUM_WORDS = 13


def ngrams(sentence: Iterable[str]) -> Iterator[int]:
    """Hashes of 64 bits: among billions of n-grams, a collision is unlikely."""
    words = re.findall(r"\w+", " ".join(map(plain_word, sentence)))
    for end in range(NUM_WORDS, len(words) + 1):
        yield hash(" ".join(words[end - NUM_WORDS : end]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+", metavar="CORPUS")
    parser.add_argument("--text", nargs="+", required=True, help="plain or gzip")
    arguments = parser.parse_args()
    # The corpus and number of each part that has an n-gram.
    owners: DefaultDict[int, Set[Tuple[str, int]]] = defaultdict(set)
    numbers: Dict[str, Tuple[int, int, str]] = {}
    shared: Set[Tuple[str, int]] = set()
    try:
        for path in arguments.corpora:
            num_parts = num_long = 0
            name, parts = read_parts(path)
            for part in parts:
                found = {ngram for sentence in part for ngram in ngrams(sentence)}
                for ngram in found:
                    owners[ngram].add((path, num_parts))
                num_parts, num_long = num_parts + 1, num_long + bool(found)
            numbers[path] = num_parts, num_long, name
        with progress("lines") as advance:
            for text in arguments.text:
                for _, sentence in read_sentences(text):
                    for ngram in ngrams(sentence):
                        shared.update(owners.pop(ngram, ()))
                    advance(1)
    except (OSError, ValueError) as error:
        raise SystemExit(str(error)) from None
    for path, (num_parts, num_long, name) in numbers.items():
        num_shared = sum(corpus == path for corpus, _ in shared)
        print(f"{path}: {num_shared:,} of {num_parts:,} {name}; {num_long:,} are long enough")


if __name__ == "__main__":
    main()
