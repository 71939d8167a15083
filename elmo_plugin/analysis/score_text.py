from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Dict

from elmo_plugin.analysis.score_rows import ScoreRows
from elmo_plugin.analysis.surprisal import Scorer
from elmo_plugin.bilm.pretraining.perplexity import Perplexity
from elmo_plugin.corpora.digested_text import DigestedText
from elmo_plugin.elmo.token_batches import sentence_groups


@dataclass
class ScoredText:
    """
    How much of a text has been scored, from which an interrupted run continues. For the numbers of
    lines and words and the hash see `DigestedText`.
    """

    num_lines: int = 0
    num_words: int = 0
    #: In each direction.
    num_predictions: int = 0
    text_sha256: str = ""
    #: The surprisal of the text in each direction.
    nats: Dict[str, float] = field(default_factory=lambda: {"forward": 0.0, "backward": 0.0})

    def perplexity(self) -> Dict[str, float]:
        """See `Perplexity.get_metric`."""
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
    Scores the sentences of a text; empty lines are left out. After a kill, the same call continues
    after the last commit and writes the same lines, since the batches are the same.

    # Parameters

    scorer : `Scorer`
    text : `DigestedText`
    rows : `ScoreRows`
        How scores are written.
    done : `ScoredText`
        The state of the last commit, or `ScoredText()` for a new run. Updated in place.
    commit : `Callable[[str, Dict[str, Any]], object]`
        Receives the next lines, and the fields of the `ScoredText` after them. The last call is at
        the end of the text. Not called for a text without words.
    location : `str`
        The folder of unfinished work, for error messages.
    batch_size : `int`, optional (default = `64`)
    on_progress : `Callable[[int], object]`
        Called with the number of lines done since the last call.

    # Raises

    `ConfigurationError`
        If the first lines are not those of `done`.
    """
    sentences = text.sentences()
    text.skip(sentences, done.num_lines, done.text_sha256, location)
    on_progress(done.num_lines)
    header = "" if done.num_lines else rows.header()
    for group in sentence_groups(sentences, batch_size):
        numbers = [line_number for line_number, words in group if words]
        scores = scorer.score([words for _, words in group if words], batch_size)
        lines = []
        for line_number, score in zip(numbers, scores):
            lines.append(rows.lines(line_number, score))
            done.num_predictions += len(score.words) + 1
            for direction in done.nats:
                done.nats[direction] += score.surprisal(direction)
        done.num_lines, done.text_sha256 = text.num_lines, text.sha256
        done.num_words = text.num_tokens
        if done.num_predictions:
            # Work without a line would stay unfinished for ever.
            commit(header + "".join(lines), asdict(done))
            header = ""
        on_progress(len(group))
