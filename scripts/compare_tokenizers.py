"""
Compares tokenizers by how well they reproduce the words of a corpus from its raw text.

    python scripts/compare_tokenizers.py $ELMO_DATA/pos/en_ewt-ud-dev.conllu snli_1.0_dev.jsonl

Input files are CoNLL-U with `# text =` lines, or SNLI, where the words of the parses are the gold
words; SNLI files without parses only show how often the tokenizers differ. Each row of the table
gives the percentage of sentences whose words are all correct, F1 of the words, and the percentage
of sentences that are split differently by `treebank_words`, which the package uses for SNLI, SST
and named entities. Coreference and SQuAD use `tokenize_with_spacy`.
"""

import re
import sys
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from nltk.tokenize import NLTKWordTokenizer, TreebankWordTokenizer

from elmo_plugin.corpora.files import numbered_lines
from elmo_plugin.corpora.json_lines import read_objects
from elmo_plugin.corpora.penn_treebank import plain_word
from elmo_plugin.corpora.tokenizer import tokenize_with_spacy, treebank_words

Sentence = Tuple[str, Optional[Sequence[str]]]
Spans = Set[Tuple[int, int]]


def snli(path: str) -> Iterator[Sentence]:
    for _, fields in read_objects(path):
        for key in ("sentence1", "sentence2"):
            parse = fields.get(f"{key}_binary_parse") or ""
            words = [plain_word(word) for word in parse.split() if word not in ("(", ")")]
            yield fields[key], words or None


def conllu(path: str) -> Iterator[Sentence]:
    text, words = "", []
    for _, line in numbered_lines(path):
        if line.startswith("# text = "):
            text = line.removeprefix("# text = ")
        elif re.match(r"\d+\t", line):
            words.append(line.split("\t")[1])
        elif not line and words:
            yield text, words
            words = []
    if words:
        yield text, words


def spans(words: Sequence[str]) -> Spans:
    """The character offsets of the words in the text without whitespace."""
    found, start = set(), 0
    for word in words:
        length = len("".join(word.split()))
        found.add((start, start + length))
        start += length
    return found


def pieces(tokenizer) -> Callable[[str], List[str]]:
    return lambda text: [text[start:end] for start, end in tokenizer.span_tokenize(text)]


RULES: Dict[str, Callable[[str], List[str]]] = {
    "spaCy, tokenize_with_spacy": lambda text: [token.text for token in tokenize_with_spacy(text)],
    "NLTK Treebank": pieces(TreebankWordTokenizer()),
    "NLTK word": pieces(NLTKWordTokenizer()),
    "by sentence, treebank_words": treebank_words,
}


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        raise SystemExit(__doc__.strip())
    for path in sys.argv[1:]:
        sentences = list((conllu if ".conllu" in path else snli)(path))
        if not sentences:
            raise SystemExit(f"{path}: expected sentences, found none.")
        known = [n for n, (text, words) in enumerate(sentences) if _fits(text, words)]
        gold = [spans(sentences[n][1]) for n in known]
        ours = [spans(treebank_words(text)) for text, _ in sentences]
        print(f"\n{path}: {len(sentences)} sentences, {len(known)} of them with known words")
        print(f"{'rules':30}{'all right':>11}{'F1':>9}{'unlike treebank_words':>23}")
        for name, rule in RULES.items():
            found = [spans(rule(text)) for text, _ in sentences]
            other = sum(a != b for a, b in zip(found, ours)) / len(sentences)
            scores = _scores([found[n] for n in known], gold) if known else f"{'-':>11}{'-':>9}"
            print(f"{name:30}{scores}{other:23.2%}")


def _fits(text: str, words: Optional[Sequence[str]]) -> bool:
    return words is not None and "".join(words) == "".join(text.split())


def _scores(found: List[Spans], gold: List[Spans]) -> str:
    whole = sum(a == b for a, b in zip(found, gold)) / len(gold)
    both = 2 * sum(len(a & b) for a, b in zip(found, gold))
    return f"{whole:11.2%}{both / sum(map(len, found + gold)):9.2%}"


if __name__ == "__main__":
    main()
