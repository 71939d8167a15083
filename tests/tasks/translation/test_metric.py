import math
import sys

import pytest
import sacrebleu

from elmo_plugin.tasks.translation.metric import TranslationScores
from elmo_plugin.util.errors import ConfigurationError

HYPOTHESES = ["Ein Hund läuft über die Wiese .", "Zwei Männer .", "", "Ein T-Shirt, rot ."]
REFERENCES = ["Ein Hund läuft über eine Wiese.", "Zwei alte Männer sitzen.", "Ja.", "T-Shirt!"]


def scores(*batches):
    metric = TranslationScores()
    for hypotheses, references in batches:
        metric(hypotheses, references)
        metric.add_loss(2.0, 4)
    return metric


def test_bleu_is_that_of_sacrebleu_over_the_whole_corpus_whatever_the_batches():
    expected = sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert 1 < expected < 99
    for cut in range(5):
        parts = [(HYPOTHESES[part], REFERENCES[part]) for part in (slice(cut), slice(cut, None))]
        assert scores(*parts).get_metric()["BLEU"] == pytest.approx(expected, abs=1e-9)


def test_bleu_without_a_correct_sequence_of_four_words_is_smoothed_as_by_sacrebleu():
    hypotheses, references = ["Ein Hund .", "Zwei Männer sitzen da"], ["Ein Hund läuft .", "Drei ."]
    expected = sacrebleu.corpus_bleu(hypotheses, [references]).score
    assert expected > 1
    found = scores((hypotheses, references)).get_metric()["BLEU"]
    assert found == pytest.approx(expected, abs=1e-9)


def test_a_space_before_punctuation_costs_nothing():
    found = scores((["Ein Hund läuft , oder ?"], ["Ein Hund läuft, oder?"])).get_metric()
    assert found["BLEU"] == pytest.approx(100.0)


def test_perplexity_is_per_token_and_a_reset_forgets():
    metric = TranslationScores()
    metric.add_loss(3.0, 2)
    metric.add_loss(9.0, 10)
    assert metric.get_metric(reset=True)["perplexity"] == pytest.approx(math.exp(12 / 12))
    assert metric.get_metric() == {}


def test_without_losses_there_is_bleu_and_without_references_there_is_perplexity():
    metric = TranslationScores()
    metric(HYPOTHESES, REFERENCES)
    assert list(metric.get_metric(reset=True)) == ["BLEU"]
    metric.add_loss(3.0, 2)
    assert list(metric.get_metric()) == ["perplexity"]


def test_a_model_that_diverges_has_an_infinite_perplexity():
    metric = TranslationScores()
    metric.add_loss(800.0, 1)
    assert metric.get_metric()["perplexity"] == math.inf


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)
    with pytest.raises(ConfigurationError, match="needs the package sacrebleu: pip install"):
        TranslationScores()
