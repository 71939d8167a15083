"""Writes the scores of a text as a tab-separated table or JSON lines, in resumable steps."""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Dict, List

import numpy

from elmo_plugin.analysis.surprisal import DIRECTIONS, UNITS, Scorer, SentenceScore
from elmo_plugin.bilm.pretraining.language_model import Perplexity
from elmo_plugin.corpora.sentence_per_line import DigestedText
from elmo_plugin.elmo.token_batches import sentence_groups


@dataclass(frozen=True)
class ScoreRows:
    """Formats scores as rows."""

    #: `tsv`, or `jsonl`: an object per sentence.
    format: str = "tsv"
    #: The unit of surprisals: `bits` or `nats`.
    unit: str = "bits"
    #: One row per sentence, with the sums over its words, instead of one per word.
    of_sentences: bool = False

    def lines(self, line_number: int, score: SentenceScore, with_header: bool = False) -> str:
        """The lines of a sentence, with their line ends. Only a table has a header."""
        if self.format == "jsonl":
            return json.dumps(self._object(line_number, score), ensure_ascii=False) + "\n"
        head, *rows = self._sums(score) if self.of_sentences else self._words(score)
        lines = [["line", *head]] if with_header else []
        lines += [[str(line_number), *row] for row in rows]
        return "".join("\t".join(cells) + "\n" for cells in lines)

    def _sums(self, score: SentenceScore) -> List[List[str]]:
        """The head, and one row."""
        sums = [self._number(score.surprisal(direction)) for direction in DIRECTIONS]
        perplexities = [f"{score.perplexity(direction):.4f}" for direction in DIRECTIONS]
        head = ["words", *DIRECTIONS, *(f"{direction}_perplexity" for direction in DIRECTIONS)]
        return [head, [str(len(score.words)), *sums, *perplexities]]

    def _words(self, score: SentenceScore) -> List[List[str]]:
        """The head, and a row per word and boundary."""
        nothing = [""] * len(score.top_k)
        begin, end = (self._number(score.ends[name]) for name in ("backward", "forward"))
        rows = [
            ["position", "word", "known", *DIRECTIONS, *(f"{name}_top_k" for name in score.top_k)],
            ["0", "<S>", "yes", "", begin, "", *nothing],
        ]
        for position, (word, known) in enumerate(zip(score.words, score.known)):
            surprisals = (self._number(getattr(score, name)[position]) for name in DIRECTIONS)
            likely = (
                " ".join(f"{other}={probability:.4f}" for other, probability in words[position])
                for words in score.top_k.values()
            )
            rows.append([str(position + 1), word, "yes" if known else "no", *surprisals, *likely])
        return [*rows, [str(len(score.words) + 1), "</S>", "yes", end, "", "", *nothing]]

    def _object(self, line_number: int, score: SentenceScore) -> Dict[str, Any]:
        found: Dict[str, Any] = {"line": line_number, "words": list(score.words)}
        if not self.of_sentences:
            found["known"] = score.known
            found.update((name, self._rounded(getattr(score, name))) for name in DIRECTIONS)
            found["<S>"] = self._rounded(score.ends["backward"])
            found["</S>"] = self._rounded(score.ends["forward"])
        if score.top_k:
            found["top_k"] = score.top_k
        found["surprisal"] = {name: self._rounded(score.surprisal(name)) for name in DIRECTIONS}
        found["perplexity"] = {name: round(score.perplexity(name), 4) for name in DIRECTIONS}
        return found

    def _number(self, nats: float) -> str:
        return f"{nats * UNITS[self.unit]:.6f}"

    def _rounded(self, nats: Any) -> Any:
        return numpy.round(nats * UNITS[self.unit], 6).tolist()


@dataclass
class ScoredText:
    """How much of a text has been scored. An interrupted run continues from it."""

    num_lines: int = 0
    num_words: int = 0
    #: In each direction.
    num_predictions: int = 0
    text_sha256: str = ""
    #: The text's surprisal in each direction.
    nats: Dict[str, float] = field(default_factory=lambda: {"forward": 0.0, "backward": 0.0})

    def perplexity(self) -> Dict[str, float]:
        metric = Perplexity()
        for direction, nats in self.nats.items():
            metric(direction, nats, self.num_predictions)
        return metric.get_metric()


def score_text(
    scorer: Scorer,
    text: DigestedText,
    rows: ScoreRows,
    done: ScoredText,
    commit: Callable[[str, Dict[str, Any]], object],
    location: str,
    batch_size: int = 64,
    on_progress: Callable[[int], object] = lambda num_lines: None,
) -> None:
    """
    Scores the sentences of a text and skips empty lines. After a kill, the same call continues
    after the last commit and writes the same lines, because the batches are the same.

    `done` is the state of the last commit, updated in place, or `ScoredText()` for a new run.
    `commit` receives the next lines and the fields of `done` after them, for the last time at the
    end of the text; a text without words gets no commit. Raises `ConfigurationError`, which names
    the `location` of unfinished work, if the text no longer begins with the lines done.
    """
    sentences = text.sentences()
    text.skip(sentences, done.num_lines, done.text_sha256, location)
    on_progress(done.num_lines)
    for group in sentence_groups(sentences, batch_size):
        numbers = [line_number for line_number, words in group if words]
        scores = scorer.score([words for _, words in group if words], batch_size)
        lines = []
        for line_number, score in zip(numbers, scores):
            is_first = not done.num_predictions
            lines.append(rows.lines(line_number, score, with_header=is_first))
            done.num_predictions += len(score.words) + 1
            for direction in done.nats:
                done.nats[direction] += score.surprisal(direction)
        done.num_lines, done.text_sha256 = text.num_lines, text.sha256
        done.num_words = text.num_tokens
        if done.num_predictions:
            # Work without a line would stay unfinished for ever.
            commit("".join(lines), asdict(done))
        on_progress(len(group))
