"""
Prints the sentences of a task's corpus as tokenised text, one per line, to evaluate a biLM on it or
to fine-tune a biLM (section 3.4 and Table 7 of the ELMo paper).

    python scripts/task_text.py $ELMO_DATA/snli/snli_1.0_dev.jsonl > snli.txt
    allennlp evaluate out/bilm/model.tar.gz snli.txt

The file name gives the kind of corpus: `.jsonl` (SNLI), `.json` (SQuAD contexts), `.txt`
(SST trees), `.conllu`, `.gold_conll` (CoNLL-2012), `.conll` (CoNLL-2003). Words are tokenised as
by the reader of the task. Each distinct sentence is printed once.
"""

import signal
import sys
from itertools import chain
from typing import Callable, Dict, Iterable, Iterator, Sequence, Tuple

import spacy

from elmo_plugin.corpora import conll2003, conll2012, snli, squad, sst
from elmo_plugin.corpora.tagged_words import read_conllu

# The words of its sentences.
Part = Sequence[Sequence[str]]


def contexts(path: str) -> Iterator[Part]:
    sentences = spacy.blank("en")
    sentences.add_pipe("sentencizer")
    for paragraph in squad.read_paragraphs(path):
        found = sentences(paragraph.context).sents
        yield [[token.text for token in each if not token.is_space] for each in found]


# What the parts of a file are, and what reads them.
READERS: Dict[str, Tuple[str, Callable[[str], Iterable[Part]]]] = {
    ".jsonl": ("pairs", lambda path: ((p.premise, p.hypothesis) for p in snli.read_pairs(path))),
    ".json": ("paragraphs", contexts),
    ".txt": ("sentences", lambda path: ([each.words] for each in sst.read_trees(path))),
    ".conllu": ("sentences", lambda path: ([each.words] for each in read_conllu(path))),
    ".gold_conll": (
        "sentences",
        lambda path: ([each.words] for each in conll2012.read_sentences(path)),
    ),
    ".conll": ("sentences", lambda path: ([each.words] for each in conll2003.read_sentences(path))),
}


def read_parts(path: str) -> Tuple[str, Iterable[Part]]:
    """What the parts of a corpus are, and the parts. Ends the program if it has another ending."""
    ending = "." + path.removesuffix(".gz").rsplit(".", 1)[-1]
    if ending not in READERS:
        raise SystemExit(f"{path}: expected a file ending in {', '.join(READERS)}.")
    name, read = READERS[ending]
    return name, read(path)


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        raise SystemExit(__doc__.strip())
    # A program that reads the output, such as `head`, may close it early.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    seen = set()
    for path in sys.argv[1:]:
        try:
            for words in chain.from_iterable(read_parts(path)[1]):
                line = " ".join(words)
                if line and line not in seen:
                    seen.add(line)
                    print(line)
        except (OSError, ValueError) as error:
            raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
