import random
from pathlib import Path

import pytest

from elmo_plugin.corpora.conll2012 import Mention, format_coreference, read_documents

from . import write

CORPUS = Path(__file__).parents[3] / "fixtures" / "corpora" / "coref"


def test_a_part_by_hand():
    words = ["Anna", "lost", "her", "keys", "."]
    mentions = [Mention(1, 2, 3), Mention(0, 2, 2), Mention(0, 0, 0)]
    assert format_coreference("mz/a", 2, [words, ["No", "!"]], [mentions, []]) == (
        "#begin document (mz/a); part 002\n"
        "mz/a\t2\t0\tAnna\t-\t*\t-\t-\t-\t-\t*\t(0)\n"
        "mz/a\t2\t1\tlost\t-\t*\t-\t-\t-\t-\t*\t-\n"
        "mz/a\t2\t2\ther\t-\t*\t-\t-\t-\t-\t*\t(1|(0)\n"
        "mz/a\t2\t3\tkeys\t-\t*\t-\t-\t-\t-\t*\t1)\n"
        "mz/a\t2\t4\t.\t-\t*\t-\t-\t-\t-\t*\t-\n"
        "\n"
        "mz/a\t2\t0\tNo\t-\t*\t-\t-\t-\t-\t*\t-\n"
        "mz/a\t2\t1\t!\t-\t*\t-\t-\t-\t-\t*\t-\n"
        "\n"
        "#end document\n"
    )


@pytest.mark.parametrize("split", ["train", "dev", "test"])
def test_gold_clusters_give_the_column_of_their_file(split):
    path = CORPUS / f"{split}.gold_conll"
    written = "".join(
        format_coreference(
            document.document_id,
            document.part,
            [sentence.words for sentence in document.sentences],
            [sentence.mentions for sentence in document.sentences],
        )
        for document in read_documents(path)
    )
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    # The speakers are not written.
    assert [[*line[:9], *line[10:]] for line in lines] == [
        [*line[:9], *line[10:]] for line in map(str.split, written.splitlines())
    ]


def test_the_line_that_begins_the_document_may_be_given():
    line = "#begin document (a); part 0 "
    assert format_coreference("a", 0, [["x"]], [[]], line).splitlines()[0] == line


def test_words_that_look_like_mentions_are_none_to_the_scorer():
    text = format_coreference("a", 0, [["8)", "(7)"]], [[Mention(1, 0, 1)]])
    # It takes what follows a line's last tab.
    cells = [line.split("\t")[-1] for line in text.splitlines()[1:3]]
    assert cells == ["(1", "1)"]


def nests(mention, mentions):
    """True if the format can represent the mention among those of its cluster."""
    return not any(
        mention.cluster_id == other.cluster_id
        and (
            mention.start < other.start <= mention.end < other.end
            or other.start < mention.start <= other.end < mention.end
        )
        for other in mentions
    )


def random_mentions(generator):
    """Words of some sentences, and mentions in each of them that the format can represent."""
    sentences, mentions = [], []
    for _ in range(generator.randint(1, 3)):
        num_words = generator.randint(1, 8)
        drawn = set()
        for _ in range(generator.randint(0, 10)):
            start = generator.randrange(num_words)
            mention = Mention(generator.randrange(3), start, generator.randrange(start, num_words))
            if nests(mention, drawn):
                drawn.add(mention)
        sentences.append([f"w{number}" for number in range(num_words)])
        mentions.append(generator.sample(sorted(drawn, key=str), len(drawn)))
    return sentences, mentions


def test_mentions_read_back_are_the_same(tmp_path):
    for seed in range(30):
        sentences, mentions = random_mentions(random.Random(seed))
        path = write(tmp_path, format_coreference("a", 0, sentences, mentions))
        (document,) = read_documents(path)
        assert [list(sentence.words) for sentence in document.sentences] == sentences, seed
        found = [set(sentence.mentions) for sentence in document.sentences]
        assert found == list(map(set, mentions)), seed


def test_mentions_of_different_clusters_may_cross(tmp_path):
    mentions = [Mention(0, 0, 1), Mention(1, 1, 2)]
    text = format_coreference("a", 0, [["x", "y", "z"]], [mentions])
    (document,) = read_documents(write(tmp_path, text))
    assert document.sentences[0].mentions == tuple(mentions)


@pytest.mark.parametrize(
    "document_id, words, message",
    [
        ("a b", ["x"], "a document name that has no spaces and does not start with #, found 'a b'"),
        ("", ["x"], "a document name that has no spaces and does not start with #, found ''"),
        ("#a", ["x"], "a document name that has no spaces and does not start with #, found '#a'"),
        ("a", ["New York"], "words without spaces, found 'New York'"),
        ("a", [""], "words without spaces, found ''"),
        ("a", [], "sentences of at least one word, found an empty one"),
    ],
)
def test_documents_that_the_format_cannot_hold(document_id, words, message):
    with pytest.raises(ValueError) as error:
        format_coreference(document_id, 0, [words], [[]])
    assert str(error.value) == f"expected {message}"
