import random

import pytest

from elmo_plugin.corpora.conll2012 import format_propositions, read_sentences

from . import rows, write


def test_propositions_by_hand():
    text = format_propositions(
        4,
        [(3, "fall"), (1, "see")],
        [["O", "O", "I-A1", "B-V"], ["I-A0", "B-V", "B-A1", "I-A1"]],
    )
    assert text == "- (A0*) *\nsee (V*) *\n- (A1* (A1*)\nfall *) (V*)\n\n"
    assert format_propositions(2, [], []) == "-\n-\n\n"


def test_an_inside_tag_that_continues_nothing_begins_a_span():
    tags = ["I-A0", "I-A1", "O", "I-A1", "B-A1", "I-A1", "I-A0", "I-A0"]
    lines = format_propositions(8, [(0, "x")], [tags]).split("\n")[:8]
    column = [line.split()[1] for line in lines]
    assert column == ["(A0*)", "(A1*)", "*", "(A1*)", "(A1*", "*)", "(A0*", "*)"]


def random_tags(generator, num_tokens, predicate_index):
    tags = []
    while len(tags) < num_tokens:
        room = (predicate_index if len(tags) < predicate_index else num_tokens) - len(tags)
        if len(tags) == predicate_index:
            tags.append("B-V")
            continue
        length = generator.randint(1, min(room, 4))
        label = generator.choice(["O", "ARG0", "ARG1", "C-ARG1", "R-ARG0", "ARGM-TMP"])
        span = [f"B-{label}"] + [f"I-{label}"] * (length - 1)
        tags += ["O"] * length if label == "O" else span
    return tuple(tags)


def test_propositions_read_back_are_the_same_tags(tmp_path):
    for seed in range(30):
        generator = random.Random(seed)
        num_tokens = generator.randint(1, 12)
        num_predicates = generator.randint(1, min(4, num_tokens))
        indices = sorted(generator.sample(range(num_tokens), num_predicates))
        tags = [random_tags(generator, num_tokens, index) for index in indices]
        shuffled = generator.sample(range(len(indices)), len(indices))
        lines = format_propositions(
            num_tokens,
            [(indices[number], "lemma") for number in shuffled],
            [tags[number] for number in shuffled],
        ).split("\n")
        assert lines[num_tokens:] == ["", ""], seed
        cells = [line.split() for line in lines[:num_tokens]]
        assert [row for row, line in enumerate(cells) if line[0] == "lemma"] == indices, seed
        columns = [" ".join(column) for column in list(zip(*cells, strict=True))[1:]]
        (sentence,) = read_sentences(write(tmp_path, rows(*columns)))
        assert [frame.tags for frame in sentence.frames] == tags, seed
        assert [frame.predicate_index for frame in sentence.frames] == indices, seed


@pytest.mark.parametrize(
    "predicates, tags, message",
    [
        (
            [(1, "a"), (1, "b")],
            [["O", "O"]] * 2,
            "expected predicates at different words below 2, found them at [1, 1]",
        ),
        (
            [(2, "a")],
            [["O", "O"]],
            "expected predicates at different words below 2, found them at [2]",
        ),
        (
            [(0, "-"), (1, "ice cream")],
            [["O", "O"]] * 2,
            "expected lemmas without spaces, and not '-', found ['-', 'ice cream']",
        ),
    ],
)
def test_propositions_that_the_format_cannot_hold(predicates, tags, message):
    with pytest.raises(ValueError) as error:
        format_propositions(2, predicates, tags)
    assert str(error.value) == message
