import pytest

from elmo_plugin.corpora.penn_treebank import plain_word


@pytest.mark.parametrize(
    "written, plain",
    [
        ("-LRB-", "("),
        ("-RCB-", "}"),
        ("``", '"'),
        ("''", '"'),
        ("`", "'"),
        ("and\\/or", "and/or"),
        ("\\*", "*"),
        ("plain", "plain"),
        ("-lrb-", "-lrb-"),
        ("\\", "\\"),
    ],
)
def test_escapes_of_the_treebank_are_removed(written, plain):
    assert plain_word(written) == plain
