"""
The sentences of a task's corpus as tokenised text, one a line: to measure a biLM on, or to
fine-tune it with (section 4.1 and table 7 of the ELMo paper).

    python scripts/task_text.py $ELMO_DATA/snli/snli_1.0_dev.jsonl > snli.txt
    allennlp evaluate out/bilm/model.tar.gz snli.txt

The kind of corpus is seen from the file's name: `.jsonl` (SNLI), `.json` (SQuAD contexts), `.txt`
(SST trees), `.conllu`, `.gold_conll` (CoNLL-2012), `.conll` (CoNLL-2003). Running text is
tokenised by spaCy's rules, which need no model. Each sentence is printed once.
"""

import json
import re
import sys
from typing import Callable, Dict, Iterator, List

import spacy

from elmo_plugin.corpora.files import open_text

ENGLISH = spacy.blank("en")


def tokenised(text: str) -> List[str]:
    return [token.text for token in ENGLISH(text) if not token.is_space]


def snli(path: str) -> Iterator[List[str]]:
    with open_text(path) as lines:
        for line in lines:
            pair = json.loads(line)
            yield tokenised(pair["sentence1"])
            yield tokenised(pair["sentence2"])


def squad(path: str) -> Iterator[List[str]]:
    sentences = spacy.blank("en")
    sentences.add_pipe("sentencizer")
    with open_text(path) as opened:
        articles = json.load(opened)["data"]
    for article in articles:
        for paragraph in article["paragraphs"]:
            for sentence in sentences(paragraph["context"]).sents:
                yield [token.text for token in sentence if not token.is_space]


def sst(path: str) -> Iterator[List[str]]:
    with open_text(path) as lines:
        for tree in lines:
            words = re.findall(r"\(\d ([^()]+)\)", tree)
            yield [word.replace("-LRB-", "(").replace("-RRB-", ")") for word in words]


def columns(word_column: int, skipped: str) -> Callable[[str], Iterator[List[str]]]:
    """`skipped` is the pattern of lines that hold no word."""

    def sentences(path: str) -> Iterator[List[str]]:
        words: List[str] = []
        with open_text(path) as lines:
            for line in lines:
                fields = line.split()
                if not fields:
                    yield words
                    words = []
                elif not re.match(skipped, line):
                    words.append(fields[word_column])
        yield words

    return sentences


READERS: Dict[str, Callable[[str], Iterator[List[str]]]] = {
    ".jsonl": snli,
    ".json": squad,
    ".txt": sst,
    # Comments, and ranges of words that are written together.
    ".conllu": columns(1, r"#|\d+[-.]\d+\t"),
    ".gold_conll": columns(3, r"#(begin|end) "),
    ".conll": columns(0, r"-DOCSTART-"),
}


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        raise SystemExit(__doc__.strip())
    seen = set()
    for path in sys.argv[1:]:
        ending = "." + path.removesuffix(".gz").rsplit(".", 1)[-1]
        if ending not in READERS:
            raise SystemExit(f"{path}: expected a file ending in {', '.join(READERS)}.")
        for words in READERS[ending](path):
            line = " ".join(words)
            if line and line not in seen:
                seen.add(line)
                print(line)


if __name__ == "__main__":
    main()
