import json
import math
from dataclasses import dataclass
from typing import Any, Dict, Iterator, List

import numpy

from elmo_plugin.analysis.surprisal import DIRECTIONS, SentenceScore, TopK

#: The value of one nat in each unit.
UNITS = {"bits": 1.0 / math.log(2.0), "nats": 1.0}


@dataclass(frozen=True)
class ScoreRows:
    """Scores as lines of text: a table with tabs, or JSON objects."""

    #: `tsv`, or `jsonl`: an object per sentence.
    format: str = "tsv"
    #: The unit of surprisals: `bits` or `nats`.
    unit: str = "bits"
    #: One row per sentence, with the sums over its words, instead of one per word.
    of_sentences: bool = False
    #: Whether scores contain the most probable words, see `Scorer`.
    has_top_k: bool = False

    def header(self) -> str:
        """The first line of a table, with its line end."""
        if self.format == "jsonl":
            return ""
        if self.of_sentences:
            names = ["line", "words", *DIRECTIONS]
            names += [f"{direction}_perplexity" for direction in DIRECTIONS]
        else:
            names = ["line", "position", "word", "known", *DIRECTIONS]
            if self.has_top_k:
                names += [f"{direction}_top_k" for direction in DIRECTIONS]
        return "\t".join(names) + "\n"

    def lines(self, line_number: int, score: SentenceScore) -> str:
        """The lines of a sentence, with their line ends."""
        if self.format == "jsonl":
            return json.dumps(self._object(line_number, score), ensure_ascii=False) + "\n"
        rows = self._sums(score) if self.of_sentences else self._words(score)
        return "".join("\t".join([str(line_number), *row]) + "\n" for row in rows)

    def _sums(self, score: SentenceScore) -> Iterator[List[str]]:
        sums = [self._number(score.surprisal(direction)) for direction in DIRECTIONS]
        perplexities = [f"{score.perplexity(direction):.4f}" for direction in DIRECTIONS]
        yield [str(len(score.words)), *sums, *perplexities]

    def _words(self, score: SentenceScore) -> Iterator[List[str]]:
        nothing = [""] * (len(DIRECTIONS) if self.has_top_k else 0)
        begin, end = (self._number(score.ends[name]) for name in ("backward", "forward"))
        yield ["0", "<S>", "yes", "", begin, "", *nothing]
        for position, word in enumerate(score.words):
            yield [
                str(position + 1),
                word,
                "yes" if score.known[position] else "no",
                *(self._number(getattr(score, direction)[position]) for direction in DIRECTIONS),
                *(_in_one_cell(score.top_k[name][position]) for name in score.top_k),
            ]
        yield [str(len(score.words) + 1), "</S>", "yes", end, "", "", *nothing]

    def _object(self, line_number: int, score: SentenceScore) -> Dict[str, Any]:
        found: Dict[str, Any] = {"line": line_number, "words": list(score.words)}
        if not self.of_sentences:
            found["known"] = score.known
            for direction in DIRECTIONS:
                found[direction] = self._rounded(getattr(score, direction))
            found["<S>"], found["</S>"] = (
                self._rounded(score.ends[name]) for name in ("backward", "forward")
            )
        if self.has_top_k:
            found["top_k"] = score.top_k
        found["surprisal"] = {name: self._rounded(score.surprisal(name)) for name in DIRECTIONS}
        found["perplexity"] = {name: round(score.perplexity(name), 4) for name in DIRECTIONS}
        return found

    def _number(self, nats: float) -> str:
        return f"{nats * UNITS[self.unit]:.6f}"

    def _rounded(self, nats: Any) -> Any:
        return numpy.round(nats * UNITS[self.unit], 6).tolist()


def _in_one_cell(words: TopK) -> str:
    return " ".join(f"{word}={probability:.4f}" for word, probability in words)
