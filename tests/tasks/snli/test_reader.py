import json

from elmo_plugin.corpora.snli import LABELS
from elmo_plugin.tasks.snli import SnliReader

PAIR = {
    "gold_label": "contradiction",
    "sentence1": "A dog runs.",
    "sentence2": "Nothing moves.",
    "pairID": "7c",
}


def read(tmp_path, *lines, **settings):
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return list(SnliReader(**settings).read(path))


def test_one_instance_per_pair_with_every_field(tmp_path):
    (instance,) = read(tmp_path, PAIR, {**PAIR, "gold_label": "-"})
    assert [token.text for token in instance["premise"]] == ["A", "dog", "runs", "."]
    assert [token.text for token in instance["hypothesis"]] == ["Nothing", "moves", "."]
    assert LABELS[instance["label"].label] == "contradiction"
    assert instance["metadata"].metadata == {
        "premise": ["A", "dog", "runs", "."],
        "hypothesis": ["Nothing", "moves", "."],
        "label": "contradiction",
        "pair_id": "7c",
    }


def test_pairs_without_labels_are_read_for_prediction(tmp_path):
    (instance,) = read(tmp_path, {"sentence1": "A dog runs.", "sentence2": "Nothing moves."})
    assert "label" not in instance.fields
    assert instance["metadata"].metadata["pair_id"] is None
