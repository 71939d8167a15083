"""
How well tokenisers find the words of a corpus in its raw text.

    python scripts/compare_tokenizers.py $ELMO_DATA/pos/en_ewt-ud-dev.conllu snli_1.0_dev.jsonl

Files are CoNLL-U with `# text =` lines, or SNLI's, in which the words of the parses are the right
ones; of SNLI without parses, only the sentences are counted in which the rules differ. A row for
each set of rules: the share of sentences with the right words only, F1 of the words, and the share
of sentences that `tokenize`, which the package uses for the words of SNLI, SST and named entities,
divides otherwise. `tokens_of` is what it uses for coreference and questions.
"""

import re
import sys
from typing import Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from nltk.tokenize import NLTKWordTokenizer, TreebankWordTokenizer

from elmo_plugin.corpora.files import numbered_lines
from elmo_plugin.corpora.json_lines import read_objects, tokenize, tokens_of
from elmo_plugin.corpora.penn_treebank import plain_word

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


def spans(words: Sequence[str]) -> Spans:
    """Where the words are in the text without its blanks."""
    found, start = set(), 0
    for word in words:
        length = len("".join(word.split()))
        found.add((start, start + length))
        start += length
    return found


def pieces(tokenizer) -> Callable[[str], List[str]]:
    return lambda text: [text[start:end] for start, end in tokenizer.span_tokenize(text)]


RULES: Dict[str, Callable[[str], List[str]]] = {
    "spaCy, tokens_of": lambda text: [token.text for token in tokens_of(text)],
    "NLTK Treebank": pieces(TreebankWordTokenizer()),
    "NLTK word": pieces(NLTKWordTokenizer()),
    "by sentence, tokenize": tokenize,
}


def main() -> None:
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        raise SystemExit(__doc__.strip())
    for path in sys.argv[1:]:
        sentences = list((conllu if ".conllu" in path else snli)(path))
        known = [n for n, (text, words) in enumerate(sentences) if _fits(text, words)]
        gold = [spans(sentences[n][1]) for n in known]
        ours = [spans(tokenize(text)) for text, _ in sentences]
        print(f"\n{path}: {len(sentences)} sentences, {len(known)} of them with known words")
        print(f"{'rules':24}{'all right':>11}{'F1':>9}{'unlike tokenize':>17}")
        for name, rule in RULES.items():
            found = [spans(rule(text)) for text, _ in sentences]
            other = sum(a != b for a, b in zip(found, ours)) / len(sentences)
            scores = _scores([found[n] for n in known], gold) if known else f"{'-':>11}{'-':>9}"
            print(f"{name:24}{scores}{other:17.2%}")


def _fits(text: str, words: Optional[Sequence[str]]) -> bool:
    return words is not None and "".join(words) == "".join(text.split())


def _scores(found: List[Spans], gold: List[Spans]) -> str:
    whole = sum(a == b for a, b in zip(found, gold)) / len(gold)
    both = 2 * sum(len(a & b) for a, b in zip(found, gold))
    return f"{whole:11.2%}{both / sum(map(len, found + gold)):9.2%}"


if __name__ == "__main__":
    main()
