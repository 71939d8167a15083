import pytest

from elmo_plugin.corpora.sst import Phrase, Tree, read_trees


@pytest.fixture
def read(write):
    return lambda text: list(read_trees(write(text)))


def test_a_tree_is_words_and_the_phrases_that_were_judged(read):
    assert read("(3 (2 -LRB-) (4 (4 quiet) (3 triumph)))\n(0 Awful)\n") == [
        Tree(
            words=("(", "quiet", "triumph"),
            phrases=(
                Phrase(0, 3, 3),
                Phrase(0, 1, 2),
                Phrase(1, 3, 4),
                Phrase(1, 2, 4),
                Phrase(2, 3, 3),
            ),
        ),
        Tree(words=("Awful",), phrases=(Phrase(0, 1, 0),)),
    ]


def test_a_tree_may_be_deeper_than_python_recurses(read):
    depth = 5000
    (tree,) = read("(2 (2 so) " * depth + "(4 good)" + ")" * depth)
    assert tree.words == ("so",) * depth + ("good",)
    assert tree.phrases[0] == Phrase(0, depth + 1, 2)
    assert tree.phrases[-2:] == (Phrase(depth - 1, depth, 2), Phrase(depth, depth + 1, 4))


def test_a_phrase_may_have_one_part_or_many(read):
    (tree,) = read("(3 (3 (2 a) (2 b) (2 c)))")
    assert tree.phrases[:2] == (Phrase(0, 3, 3), Phrase(0, 3, 3))
    assert len(tree.phrases) == 5


def test_blanks_and_empty_lines_do_not_change_a_tree(read):
    assert read("\n  ( 3(2 A )\t(4  gem) )  \n\n") == read("(3 (2 A) (4 gem))")
