"""Writes the scores of a text as a tab-separated table, in resumable steps."""

from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Dict, List

from elmo_plugin.analysis.surprisal import BITS, DIRECTIONS, Scorer, SentenceScore
from elmo_plugin.bilm.pretraining.perplexity import Perplexity
from elmo_plugin.corpora.sentence_per_line import DigestedText
from elmo_plugin.elmo.token_batches import sentence_groups


def rows_of_words(score: SentenceScore) -> List[List[str]]:
    """The head of a table, and a row for each word and boundary. Surprisals are in bits."""
    begin, end = (_in_bits(score.ends[name]) for name in ("backward", "forward"))
    rows = [["position", "word", "known", *DIRECTIONS], ["0", "<S>", "yes", "", begin, ""]]
    for position, (word, known) in enumerate(zip(score.words, score.known)):
        surprisals = (_in_bits(getattr(score, name)[position]) for name in DIRECTIONS)
        rows.append([str(position + 1), word, "yes" if known else "no", *surprisals])
    return [*rows, [str(len(score.words) + 1), "</S>", "yes", end, "", ""]]


def rows_of_sentence(score: SentenceScore) -> List[List[str]]:
    """The head of a table, and one row, with the sums of a sentence in bits."""
    sums = [_in_bits(score.surprisal(direction)) for direction in DIRECTIONS]
    perplexities = [f"{score.perplexity(direction):.4f}" for direction in DIRECTIONS]
    head = ["words", *DIRECTIONS, *(f"{direction}_perplexity" for direction in DIRECTIONS)]
    return [head, [str(len(score.words)), *sums, *perplexities]]


def _in_bits(nats: float) -> str:
    return f"{nats * BITS:.6f}"


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
    rows: Callable[[SentenceScore], List[List[str]]],
    done: ScoredText,
    commit: Callable[[str, Dict[str, Any]], object],
    location: str,
    batch_size: int = 64,
    on_progress: Callable[[int], object] = lambda num_lines: None,
) -> None:
    """
    Scores the sentences of a text and skips empty lines. After a kill, the same call continues
    after the last commit and writes the same lines, because the batches are the same.

    `rows` is `rows_of_words` or `rows_of_sentence`; the number of the line stands before each row.
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
            head, *cells = rows(score)
            if not done.num_predictions:
                lines.append(["line", *head])
            lines += [[str(line_number), *row] for row in cells]
            done.num_predictions += len(score.words) + 1
            for direction in done.nats:
                done.nats[direction] += score.surprisal(direction)
        done.num_lines, done.text_sha256 = text.num_lines, text.sha256
        done.num_words = text.num_tokens
        if done.num_predictions:
            # Work without a line would stay unfinished for ever.
            commit("".join("\t".join(line) + "\n" for line in lines), asdict(done))
        on_progress(len(group))
