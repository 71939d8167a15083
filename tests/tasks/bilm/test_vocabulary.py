import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_plugin.bilm.vocabulary_file import count_and_choose, write_vocabulary
from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary, softmax_counts, softmax_ids

TEXT = "the owl saw the owl\n\nthe cat saw it\n"
ENTRIES = [
    ("<S>", 2), ("</S>", 2), ("<UNK>", 0), ("the", 3), ("owl", 2), ("saw", 2), ("cat", 1), ("it", 1)
]  # fmt: skip
ODD_WORDS = [
    "@@UNKNOWN@@", "@@PADDING@@", "@@NEWLINE@@", "a@@NEWLINE@@b", "n\0l", "\U0001f989\u200d",
    "שלום", "\u200b", "\ufeff", "caf\ufffd", "x" * 10_000, "#", "0", "3 7",
]  # fmt: skip


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def vocabulary_file(tmp_path):
    """Writes lines to a file."""

    def write(*lines):
        path = tmp_path / "vocabulary.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    return write


def words(vocabulary):
    entries = vocabulary.get_index_to_token_vocabulary("softmax_labels")
    return [entries[number] for number in range(len(entries))]


def from_params(**params):
    return Vocabulary.from_params(Params({"type": "elmo-bilm", **params}), instances=iter([]))


def saved_and_loaded(vocabulary, folder):
    """As an archive gives it, and as a process of a distributed training gets it."""
    vocabulary.save_to_files(str(folder))
    archived, _ = Vocabulary.resolve_class_name("elmo-bilm")
    as_one_of_ours = archived.from_files(str(folder), None, None)
    as_one_of_allennlp = Vocabulary.from_params(
        Params({"type": "from_files", "directory": str(folder)})
    )
    return as_one_of_ours, as_one_of_allennlp


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({}, ENTRIES),
        # Words that are left out are counted as unknown.
        ({"size": 5}, [*ENTRIES[:2], ("<UNK>", 4), *ENTRIES[3:5]]),
        ({"min_count": 2}, [*ENTRIES[:2], ("<UNK>", 2), *ENTRIES[3:6]]),
    ],
)
def test_words_come_by_count_and_then_by_their_letters_also_when_loaded(text, settings, expected):
    if not settings:
        assert count_and_choose(text) == expected
    vocabulary = from_params(text=str(text), **settings)
    ours, theirs = saved_and_loaded(vocabulary, text.parent / "vocabulary")
    assert isinstance(vocabulary, SoftmaxVocabulary) and isinstance(ours, SoftmaxVocabulary)
    for each in (vocabulary, ours, theirs):
        assert words(each) == list(softmax_ids(each)) == [word for word, _ in expected]
        assert softmax_counts(each) == [count for _, count in expected]


def test_special_words_that_stand_in_the_text_are_counted_where_they_belong(tmp_path):
    (tmp_path / "a.txt").write_text("<S> the <UNK> </S>\n<S> <UNK> saw </S>\n")
    assert count_and_choose(tmp_path / "a.txt") == [
        ("<S>", 4), ("</S>", 4), ("<UNK>", 2), ("saw", 1), ("the", 1)
    ]  # fmt: skip


def test_a_file_of_bilm_tf_has_no_counts(vocabulary_file, tmp_path):
    file = vocabulary_file("<S>", "</S>", "<UNK>", "the", "!!!MAXTERMID", "a\u00a0b", "of")
    vocabulary = from_params(file=file, size=5)
    assert words(vocabulary) == ["<S>", "</S>", "<UNK>", "the", "a\u00a0b"]
    for each in (vocabulary, *saved_and_loaded(vocabulary, tmp_path / "vocabulary")):
        assert softmax_counts(each) is None
    with pytest.raises(
        ConfigurationError, match=r"with counts of at least `min_count` \(2\), found none"
    ):
        from_params(file=file, min_count=2)


def test_words_of_a_file_that_were_never_counted_are_kept(vocabulary_file):
    file = vocabulary_file("<S>\t9", "</S>\t9", "<UNK>\t3", "the\t5", "new\t0")
    assert words(from_params(file=file)) == ["<S>", "</S>", "<UNK>", "the", "new"]
    assert words(from_params(file=file, min_count=2)) == ["<S>", "</S>", "<UNK>", "the"]


@pytest.mark.parametrize(
    "lines, message",
    [
        (
            ["<S>\t9", "</S>\t9", "<UNK>\t3", "the\t5", "of\t7"],
            r":5: expected words in descending order .*`of` \(7\) after `the` \(5\)",
        ),
        (["the\t9", "of\t8", "a\t3"], ":1: expected `<S>`, found `the`"),
        (["<S>\t9", "</S>\t9", "the\t3"], ":3: expected `<UNK>`, found `the`"),
        (["</S>", "<S>", "<UNK>"], ":1: expected `<S>`, found `</S>`"),
        (["<S>\t9", "</S>\t9"], "expected words besides <S>, </S>, <UNK> .*found none"),
        (["<S>", "</S>", "<UNK>"], "expected words besides .*found none"),
        ([], "expected words besides .*found none"),
        (["<S>\t9", "</S>\t9", "<UNK>\t3", "the\t5", "the\t4"], ":5: .* once, found `the` twice"),
        (["<S>\t9", "</S>\t9", "<UNK>\t3", "the\tmany"], r":4: .*`word<TAB>count`.*'the\\tmany'"),
        (["<S>\t9", "</S>\t9", "<UNK>\t3", "the\t-4"], ":4: .*`word<TAB>count`"),
        (["<S>\t9", "</S>\t9", "<UNK>\t3", "the\t"], ":4: .*`word<TAB>count`"),
        (["<S>\t9", "</S>\t9", "<UNK>\t3", "the"], ":4: .*`word<TAB>count`.*found 'the'"),
        (["<S>", "</S>", "<UNK>", "the\t4"], ":4: .*a word without count, found"),
        (["<S>", "</S>", "<UNK>", "", "the"], ":4: expected a word without count, found ''"),
    ],
)
def test_a_file_that_cannot_be_one_is_refused(vocabulary_file, lines, message):
    with pytest.raises(ConfigurationError, match=f"vocabulary.txt.*{message}"):
        from_params(file=vocabulary_file(*lines))


@pytest.mark.parametrize(
    "settings, message",
    [
        ({}, "found neither"),
        ({"text": "text.txt", "file": "text.txt"}, "found both"),
        ({"text": "", "file": "text.txt"}, "found both"),
        ({"text": "text.txt", "size": 3}, "`size` of at least 4, found 3"),
        ({"text": "text.txt", "min_count": 0}, "`min_count` of at least 1, found 0"),
        ({"text": "text.txt", "min_count": 4}, r"at least `min_count` \(4\), found none"),
        ({"file": "vocabulary.txt", "min_count": 4}, r"at least `min_count` \(4\), found none"),
        ({"file": "nowhere.txt"}, "nowhere.txt does not exist"),
        ({"text": "nowhere.txt"}, "`nowhere.txt` is no file"),
        ({"file": "latin.txt"}, "latin.txt:2: expected UTF-8"),
        ({"text": "empty.txt"}, "empty.txt: expected words .*found none"),
    ],
)
def test_impossible_settings_are_refused(text, tmp_path, monkeypatch, settings, message):
    monkeypatch.chdir(tmp_path)
    write_vocabulary(count_and_choose(text), tmp_path / "vocabulary.txt")
    (tmp_path / "latin.txt").write_bytes(b"<S>\ncaf\xe9\n")
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(ConfigurationError, match=message):
        from_params(**settings)


def test_odd_words_survive_saving_and_loading(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(ODD_WORDS))
    vocabulary = from_params(text=str(tmp_path / "a.txt"))
    ids = softmax_ids(vocabulary)
    assert all(ids[word] > 2 for odd in ODD_WORDS for word in odd.split())
    for loaded in saved_and_loaded(vocabulary, tmp_path / "vocabulary"):
        assert softmax_ids(loaded) == ids
        assert softmax_counts(loaded) == softmax_counts(vocabulary)
    write_vocabulary(count_and_choose(tmp_path / "a.txt"), tmp_path / "file.txt")
    assert softmax_ids(from_params(file=str(tmp_path / "file.txt"))) == ids


def test_the_counts_of_another_vocabulary_are_unknown():
    other = Vocabulary()
    assert softmax_counts(other) is None
    with pytest.raises(ConfigurationError, match="`softmax_labels` .* begin with <S>, </S>, <UNK>"):
        softmax_ids(other)
    assert not other.get_namespaces()
