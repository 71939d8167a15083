"""
Makes two data sets of labelled texts from public corpora, for the guide's pages on own data:

    python examples/own_data.py TREEBANK SQUAD OUT

TREEBANK is the folder of UD English EWT (en_ewt-ud-train.conllu, …), SQUAD that of SQuAD 1.1
(train-v1.1.json, dev-v1.1.json; .gz, too). OUT receives

- genres/{train,dev,test}.csv: `text`, a sentence of the treebank, and `label`, the kind of web page
  that it is from; repeated sentences are left out,
- answers/{train,dev,test}.csv: `premise`, a sentence of a paragraph, `hypothesis`, a question, and
  `label`, whether the answer is in the sentence. Each question has two rows: the sentence with
  its answer, and another one of the paragraph, drawn at random. Train has 10,000 questions of
  SQuAD's training split. Dev and test are halves of the articles of its dev split, 2,000 questions
  of each.

Needs spaCy, whose rules split paragraphs into sentences.
"""

import argparse
import csv
import random
from pathlib import Path
from typing import Dict, Iterable, Iterator, List, Sequence, Tuple

import spacy

from elmo_plugin.corpora.squad import Paragraph, read_paragraphs
from elmo_plugin.util.text_files import numbered_lines

SEED = 13
NUM_QUESTIONS = {"train": 10_000, "dev": 2_000, "test": 2_000}


def genres(path: Path, seen: Dict[str, None]) -> Iterator[Tuple[str, str]]:
    """The sentences of a file and their genres, without those in `seen`, which it fills."""
    genre = ""
    for _, line in numbered_lines(path):
        if line.startswith("# sent_id = "):
            genre = line.removeprefix("# sent_id = ").split("-")[0]
        elif line.startswith("# text = "):
            text = line.removeprefix("# text = ")
            if text not in seen:
                seen[text] = None
                yield text, genre


def answers(paragraphs: Sequence[Paragraph], number: int) -> Iterator[Tuple[str, str, str]]:
    """Two rows for each of at most `number` questions, drawn at random."""
    generator = random.Random(SEED)
    splitter = spacy.blank("en")
    splitter.add_pipe("sentencizer")
    rows: List[List[Tuple[str, str, str]]] = []
    for paragraph in paragraphs:
        sentences = list(splitter(paragraph.context).sents)
        for question in paragraph.questions:
            answer = question.answers[0]
            first, last = answer.start, answer.start + len(answer.text)
            inside = [s for s in sentences if s.start_char <= first and last <= s.end_char]
            others = [s for s in sentences if s not in inside]
            if inside and others:
                chosen = (inside[0], "answer"), (generator.choice(others), "no answer")
                rows.append([(one_line(s.text), one_line(question.text), n) for s, n in chosen])
    for pair in generator.sample(rows, min(number, len(rows))):
        yield from pair


def one_line(text: str) -> str:
    return " ".join(text.split())


def write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(rows)


def file_of(folder: Path, name: str) -> Path:
    return next(path for path in (folder / name, folder / f"{name}.gz") if path.exists())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("treebank", "squad", "out"):
        parser.add_argument(name, type=Path)
    args = parser.parse_args()
    seen: Dict[str, None] = {}
    # Test first, so that a sentence of it is in no other split.
    for split in ("test", "dev", "train"):
        rows = genres(args.treebank / f"en_ewt-ud-{split}.conllu", seen)
        write(args.out / "genres" / f"{split}.csv", ("text", "label"), rows)
    train = list(read_paragraphs(file_of(args.squad, "train-v1.1.json")))
    other = list(read_paragraphs(file_of(args.squad, "dev-v1.1.json")))
    # Paragraphs of an article follow each other, so at most one article is in both halves.
    half = len(other) // 2
    for split, paragraphs in (("train", train), ("dev", other[:half]), ("test", other[half:])):
        rows = answers(paragraphs, NUM_QUESTIONS[split])
        path = args.out / "answers" / f"{split}.csv"
        write(path, ("premise", "hypothesis", "label"), rows)


if __name__ == "__main__":
    main()
