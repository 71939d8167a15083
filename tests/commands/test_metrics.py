"""How metrics are printed."""

from elmo_plugin.commands.metrics import format_metrics


def test_the_headline_is_first_and_labels_have_a_table():
    kinds = ("precision", "recall", "f1-measure")
    metrics = {"loss": 12.5, "accuracy": 0.75, "_speed": 1.0, "epoch": 3}
    for label, scores in {"overall": (0.5, 0.25, 1 / 3), "PER": (1.0, 0.0, 0.0)}.items():
        metrics.update({f"{kind}-{label}": score for kind, score in zip(kinds, scores)})
    assert format_metrics(metrics).splitlines() == [
        "f1-measure-overall   0.3333",
        "accuracy             0.7500",
        "epoch                     3",
        "precision-overall    0.5000",
        "recall-overall       0.2500",
        "loss                12.5000",
        "",
        "label  precision  recall  f1-measure",
        "PER       1.0000  0.0000      0.0000",
    ]


def test_every_task_has_its_headline():
    for headline in ("coref_f1", "f1", "accuracy", "perplexity"):
        assert format_metrics({"em": 0.1, "loss": 2.0, headline: 0.5}).startswith(headline)


def test_no_metrics_are_no_lines():
    assert format_metrics({}) == ""
