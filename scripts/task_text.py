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
from typing import Callable, Dict, Iterable, Iterator, Sequence

import spacy

from elmo_plugin.corpora import conll2003, conll2012, snli, squad, sst
from elmo_plugin.corpora.tagged_words import read_conllu


def pairs(path: str) -> Iterator[Sequence[str]]:
    for pair in snli.read_pairs(path):
        yield pair.premise
        yield pair.hypothesis


def contexts(path: str) -> Iterator[Sequence[str]]:
    sentences = spacy.blank("en")
    sentences.add_pipe("sentencizer")
    for paragraph in squad.read_paragraphs(path):
        for sentence in sentences(paragraph.context).sents:
            yield [token.text for token in sentence if not token.is_space]


READERS: Dict[str, Callable[[str], Iterable[Sequence[str]]]] = {
    ".jsonl": pairs,
    ".json": contexts,
    ".txt": lambda path: (tree.words for tree in sst.read_trees(path)),
    ".conllu": lambda path: (sentence.words for sentence in read_conllu(path)),
    ".gold_conll": lambda path: (sentence.words for sentence in conll2012.read_sentences(path)),
    ".conll": lambda path: (sentence.words for sentence in conll2003.read_sentences(path)),
}


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        raise SystemExit(__doc__.strip())
    # A program that reads the output, such as `head`, may close it early.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    seen = set()
    for path in sys.argv[1:]:
        ending = "." + path.removesuffix(".gz").rsplit(".", 1)[-1]
        if ending not in READERS:
            raise SystemExit(f"{path}: expected a file ending in {', '.join(READERS)}.")
        try:
            for words in READERS[ending](path):
                line = " ".join(words)
                if line and line not in seen:
                    seen.add(line)
                    print(line)
        except (OSError, ValueError) as error:
            raise SystemExit(str(error)) from None


if __name__ == "__main__":
    main()
