"""
Writes the propositions of a CoNLL-2012 file in the format of the CoNLL-2005 scorer `srl-eval.pl`.

    python scripts/gold_propositions.py dev.gold_conll > gold.props

Sentences without a predicate are skipped.
"""

import argparse
import sys

from elmo_plugin.corpora.conll2012 import format_propositions, read_sentences


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", help="plain or gzip file, a URL, or a folder of *gold_conll files")
    path = parser.parse_args().file
    try:
        for sentence in read_sentences(path):
            if sentence.frames:
                predicates = [
                    (frame.predicate_index, frame.lemma or sentence.words[frame.predicate_index])
                    for frame in sentence.frames
                ]
                tags = [frame.tags for frame in sentence.frames]
                num_words, place = len(sentence.words), sentence.location
                sys.stdout.write(format_propositions(num_words, predicates, tags, place))
    except (OSError, ValueError) as error:
        parser.exit(1, f"{error}\n")


if __name__ == "__main__":
    main()
