import re

import pytest
import torch
from allennlp.data import Token

from elmo_plugin.tasks.coref import CorefReader
from elmo_plugin.tasks.coref.reader import genre_of

PART = """\
#begin document (bc/talk/0001); part 001
bc/talk/0001 1 0 Anna NNP * - - - Tom * (4)
bc/talk/0001 1 1 lost VBD * - - - Tom * -
bc/talk/0001 1 2 her PRP$ * - - - Tom * (2|(4)
bc/talk/0001 1 3 keys NNS * - - - Tom * 2)

bc/talk/0001 1 0 She PRP * - - - - * (4)
bc/talk/0001 1 1 found VBD * - - - - * -
bc/talk/0001 1 2 them PRP * - - - Eva * (2)

#end document
"""


def read(tmp_path, text, **settings):
    path = tmp_path / "x.gold_conll"
    path.write_text(text)
    return list(CorefReader(**settings).read(path))


def sentences(*words):
    return [[Token(word) for word in sentence.split()] for sentence in words]


def test_one_instance_per_part_with_every_field(tmp_path):
    (instance,) = read(tmp_path, PART)
    assert [[token.text for token in sentence] for sentence in instance["sentences"]] == [
        ["Anna", "lost", "her", "keys"],
        ["She", "found", "them"],
    ]
    speakers = instance["speakers"]
    assert speakers.tensor.tolist() == [0, 0, 0, 0, 1, 1, 2]
    assert (speakers.tensor.dtype, speakers.padding_value) == (torch.long, -1)
    assert instance["genre"].label == "bc"
    mentions = instance["gold_mentions"]
    assert mentions.tensor.tolist() == [[0, 0, 0], [2, 2, 0], [2, 3, 1], [4, 4, 0], [6, 6, 1]]
    assert (mentions.tensor.dtype, mentions.padding_value) == (torch.long, -1)
    assert instance["metadata"].metadata == {
        "document_id": "bc/talk/0001",
        "part": 1,
        "begin_line": "#begin document (bc/talk/0001); part 001",
        "sentences": [["Anna", "lost", "her", "keys"], ["She", "found", "them"]],
        "speakers": ["Tom"] * 4 + ["-", "-", "Eva"],
        "genre": "bc",
        "clusters": [[(0, 0), (2, 2), (4, 4)], [(2, 3), (6, 6)]],
    }


def test_documents_without_labels_are_read_for_prediction():
    instance = CorefReader().text_to_instance(sentences("Anna left .", "She ran ."))
    assert "gold_mentions" not in instance.fields
    assert instance["speakers"].tensor.tolist() == [0] * 6
    metadata = instance["metadata"].metadata
    assert metadata["clusters"] is None
    assert (metadata["genre"], metadata["document_id"], metadata["part"]) == ("-", "-", 0)
    assert metadata["speakers"] == ["-"] * 6


def test_a_document_without_mentions_is_labelled_too(tmp_path):
    text = "#begin document (a); part 000\na 0 0 Hello UH * - - - - * -\n#end document\n"
    (instance,) = read(tmp_path, text)
    assert instance["gold_mentions"].tensor.shape == (0, 3)
    assert instance["metadata"].metadata["clusters"] == []


@pytest.mark.parametrize(
    "document_id, genre",
    [
        ("nw/xinhua/00/chtb_0001", "nw"),
        ("gum/news/GUM_news_asylum", "news"),
        ("litbank/940", "litbank"),
        ("940", "-"),
        ("/a", "-"),
        ("/bn/abc/1", "bn"),
    ],
)
def test_the_genre_is_told_by_the_folders(document_id, genre):
    assert genre_of(document_id) == genre


def test_a_mention_in_two_clusters_stays_in_both(tmp_path):
    (instance,) = read(tmp_path, PART.replace("- Eva * (2)", "- Eva * (2)|(4)"))
    assert instance["metadata"].metadata["clusters"] == [
        [(0, 0), (2, 2), (4, 4), (6, 6)],
        [(2, 3), (6, 6)],
    ]
    assert instance["gold_mentions"].tensor.tolist()[-2:] == [[6, 6, 0], [6, 6, 1]]


def test_a_mention_twice_in_one_cluster_counts_once(tmp_path):
    (instance,) = read(tmp_path, PART.replace("- Eva * (2)", "- Eva * (2)|(2)"))
    assert instance["metadata"].metadata["clusters"][1] == [(2, 3), (6, 6)]


def test_clusters_keep_the_order_in_which_the_scorer_numbers_them(tmp_path):
    text = PART.replace("(2|(4)", "(6|(2|(4)").replace("* 2)", "* 2)|6)")
    (instance,) = read(tmp_path, text)
    assert instance["metadata"].metadata["clusters"] == [
        [(0, 0), (2, 2), (4, 4)],
        [(2, 3)],
        [(2, 3), (6, 6)],
    ]


def test_a_file_without_mentions_is_named_but_not_a_sample_without_them(tmp_path, caplog):
    bare = re.sub(r"(?m)^(bc/.*) \S+$", r"\1 -", PART)
    assert len(read(tmp_path, bare)) == 1
    assert "expected mentions in the last column" in caplog.text
    caplog.clear()
    sample = read(tmp_path, PART + 9 * bare, fraction=0.3, fraction_seed=2)
    assert sample and not any(each["metadata"].metadata["clusters"] for each in sample)
    assert "expected mentions" not in caplog.text
