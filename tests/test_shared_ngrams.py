"""`scripts/shared_ngrams.py` counts the parts of corpora that share 13 words with a text."""

import gzip
import json
import random
import re
import runpy
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


@pytest.fixture
def count(monkeypatch, capsys):
    """Runs the script, and returns the counts of each corpus: parts that share, all, and long."""

    def count(*arguments):
        monkeypatch.setattr(sys, "argv", ["shared_ngrams.py", *map(str, arguments)])
        monkeypatch.syspath_prepend(SCRIPTS)
        runpy.run_path(str(SCRIPTS / "shared_ngrams.py"), run_name="__main__")
        lines = capsys.readouterr().out.splitlines()
        return [list(map(int, re.findall(r"\d+", line.rpartition(": ")[2]))) for line in lines]

    return count


def rows(sentences):
    return "".join("".join(f"{word} O\n" for word in words) + "\n" for words in sentences)


def test_counts_are_those_of_a_slow_comparison(tmp_path, count):
    generator = random.Random(0)
    # Of two words, most sentences have 13 that others have, too.
    sentences = [generator.choices("ab", [8, 1], k=generator.randrange(5, 40)) for _ in range(80)]
    text, corpus = sentences[:40], sentences[40:]
    (tmp_path / "x.conll").write_text(rows(corpus))
    for number, part in enumerate((text[:20], text[20:])):
        lines = "".join(f"{' '.join(words)}\n" for words in part)
        (tmp_path / f"{number}.txt.gz").write_bytes(gzip.compress(lines.encode()))

    def grams(words):
        return {tuple(words[start : start + 13]) for start in range(len(words) - 12)}

    known = set.union(*map(grams, text))
    shared = sum(bool(grams(words) & known) for words in corpus)
    num_long = sum(len(words) >= 13 for words in corpus)
    assert 5 < shared < num_long < 40
    files = [tmp_path / "0.txt.gz", tmp_path / "1.txt.gz"]
    assert count(tmp_path / "x.conll", "--text", *files) == [[shared, 40, num_long]]


def test_pairs_paragraphs_and_other_tokenisers(tmp_path, count):
    raw = "A well-known owl (which sings) lives in the old tower behind our school."
    words = "A well-known owl ( which sings ) lives in the old tower behind our school .".split()
    pair = {"gold_label": "neutral", "sentence1": raw, "sentence2": "Short."}
    paragraphs = []
    # Words of two sentences do not count, and neither do words of another case.
    for context in (f"So: {raw}", raw.replace("tower ", "tower. "), raw.replace("sings", "Sings")):
        answer = {"text": "owl", "answer_start": context.index("owl")}
        question = {"id": context, "question": "Who?", "answers": [answer]}
        paragraphs.append({"context": context, "qas": [question]})
    squad = {"version": "1.1", "data": [{"title": "x", "paragraphs": paragraphs}]}
    (tmp_path / "x.jsonl").write_text(json.dumps(pair) + "\n")
    (tmp_path / "x.json").write_text(json.dumps(squad))
    escapes = {"(": "-LRB-", ")": "-RRB-"}
    (tmp_path / "x.conll").write_text(rows([[escapes.get(word, word) for word in words]]))
    (tmp_path / "text.txt").write_text(" ".join(words) + "\n")
    paths = [tmp_path / f"x{ending}" for ending in (".jsonl", ".json", ".conll")]
    found = count(*paths, "--text", tmp_path / "text.txt")
    assert found == [[1, 1, 1], [1, 3, 2], [1, 1, 1]]


def test_an_unknown_kind_is_refused(count):
    with pytest.raises(SystemExit, match="x.csv: expected a file ending in .jsonl"):
        count("x.csv", "--text", "text.txt")
