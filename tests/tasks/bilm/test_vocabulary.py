import pickle

import pytest
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_plugin.bilm.vocabulary_file import choose_words, read_vocabulary, write_vocabulary
from elmo_plugin.corpora.sentence_per_line import count_words
from elmo_plugin.tasks.bilm.data_loader import BilmDataLoader
from elmo_plugin.tasks.bilm.reader import BilmReader
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


def test_words_come_by_count_and_then_by_their_letters(text):
    assert choose_words(count_words([text])) == ENTRIES
    vocabulary = from_params(text=str(text))
    assert isinstance(vocabulary, SoftmaxVocabulary)
    assert words(vocabulary) == [word for word, _ in ENTRIES]
    assert softmax_counts(vocabulary) == [count for _, count in ENTRIES]


def test_words_left_out_are_counted_as_unknown(text):
    five = from_params(text=str(text), size=5)
    assert words(five) == ["<S>", "</S>", "<UNK>", "the", "owl"]
    assert softmax_counts(five) == [2, 2, 4, 3, 2]
    frequent = from_params(text=str(text), min_count=2)
    assert words(frequent) == ["<S>", "</S>", "<UNK>", "the", "owl", "saw"]
    assert softmax_counts(frequent) == [2, 2, 2, 3, 2, 2]


def test_special_words_that_stand_in_the_text_are_counted_where_they_belong(tmp_path):
    (tmp_path / "a.txt").write_text("<S> the <UNK> </S>\n<S> <UNK> saw </S>\n")
    assert choose_words(count_words([tmp_path / "a.txt"])) == [
        ("<S>", 4), ("</S>", 4), ("<UNK>", 2), ("saw", 1), ("the", 1)
    ]  # fmt: skip


def test_a_file_is_read_back_as_it_was_written(text, tmp_path):
    write_vocabulary(ENTRIES, tmp_path / "vocabulary.txt")
    lines = (tmp_path / "vocabulary.txt").read_text().split("\n")
    assert lines[:4] == ["<S>\t2", "</S>\t2", "<UNK>\t0", "the\t3"] and lines[-1] == ""
    assert read_vocabulary(tmp_path / "vocabulary.txt") == ENTRIES
    vocabulary = from_params(file=str(tmp_path / "vocabulary.txt"), size=5)
    counted = from_params(text=str(text), size=5)
    assert words(vocabulary) == words(counted)
    assert softmax_counts(vocabulary) == softmax_counts(counted)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.txt", "vocabulary.txt"]


def test_a_file_of_bilm_tf_has_no_counts(vocabulary_file):
    file = vocabulary_file("<S>", "</S>", "<UNK>", "the", "!!!MAXTERMID", "a\u00a0b", "of")
    vocabulary = from_params(file=file, size=5)
    assert words(vocabulary) == ["<S>", "</S>", "<UNK>", "the", "a\u00a0b"]
    assert softmax_counts(vocabulary) is None
    with pytest.raises(ConfigurationError, match="holds no counts, so `min_count` 2 cannot"):
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
        (["<S>\t9", "</S>\t9"], "expected <S>, </S>, <UNK> and .*found 2 lines"),
        (["<S>", "</S>", "<UNK>"], "found 3 lines"),
        ([], "found 0 lines"),
        (["<S>\t9", "</S>\t9", "<UNK>\t3", "the\t5", "the\t4"], ":5: `the` occurs twice"),
        (["<S>\t9", "</S>\t9", "<UNK>\t3", "the\tmany"], r":4: .*`word<TAB>count`.*'the\\tmany'"),
        (["<S>\t9", "</S>\t9", "<UNK>\t3", "the\t-4"], ":4: .*`word<TAB>count`"),
        (["<S>\t9", "</S>\t9", "<UNK>\t3", "the"], ":4: .*a count after every word .*found none"),
        (["<S>", "</S>", "<UNK>", "the\t4"], ":4: .*a count after every word .*found 4"),
        (["<S>", "</S>", "<UNK>", "", "the"], ":4: expected a word, found none"),
    ],
)
def test_a_file_that_cannot_be_one_is_refused(vocabulary_file, lines, message):
    with pytest.raises(ConfigurationError, match=f"vocabulary.txt.*{message}"):
        from_params(file=vocabulary_file(*lines))


def test_impossible_settings_are_refused(text, tmp_path):
    with pytest.raises(ConfigurationError, match="found neither"):
        from_params()
    with pytest.raises(ConfigurationError, match="found both"):
        from_params(text=str(text), file=str(text))
    with pytest.raises(ConfigurationError, match="found both"):
        from_params(text="", file=str(text))
    with pytest.raises(ConfigurationError, match="`size` of at least 4, found 3"):
        from_params(text=str(text), size=3)
    with pytest.raises(ConfigurationError, match="`min_count` of at least 1, found 0"):
        from_params(text=str(text), min_count=0)
    with pytest.raises(ConfigurationError, match="`min_count` of at most 3, .* found 4"):
        from_params(text=str(text), min_count=4)
    write_vocabulary(choose_words(count_words([text])), tmp_path / "file.txt")
    with pytest.raises(ConfigurationError, match="`min_count` of at most 3, .* found 4"):
        from_params(file=str(tmp_path / "file.txt"), min_count=4)
    with pytest.raises(ConfigurationError, match="nowhere.txt does not exist"):
        from_params(file="nowhere.txt")
    with pytest.raises(ConfigurationError, match="`nowhere.txt` is no file"):
        from_params(text="nowhere.txt")
    (tmp_path / "latin.txt").write_bytes(b"<S>\ncaf\xe9\n")
    with pytest.raises(ConfigurationError, match="latin.txt:2: expected UTF-8"):
        from_params(file=str(tmp_path / "latin.txt"))
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(ConfigurationError, match="Expected words, found none in .*empty.txt"):
        from_params(text=str(tmp_path / "empty.txt"))


def saved_and_loaded(vocabulary, folder):
    """As an archive gives it, and as a process of a distributed training gets it."""
    vocabulary.save_to_files(str(folder))
    archived, _ = Vocabulary.resolve_class_name("elmo-bilm")
    as_one_of_ours = archived.from_files(str(folder), None, None)
    as_one_of_allennlp = Vocabulary.from_params(
        Params({"type": "from_files", "directory": str(folder)})
    )
    return as_one_of_ours, as_one_of_allennlp


@pytest.mark.parametrize("size", [None, 5])
def test_saving_and_loading_keeps_words_and_counts(text, tmp_path, size):
    vocabulary = from_params(text=str(text), size=size)
    for loaded in saved_and_loaded(vocabulary, tmp_path / "vocabulary"):
        assert words(loaded) == words(vocabulary)
        assert softmax_counts(loaded) == softmax_counts(vocabulary)
        assert softmax_ids(loaded) == softmax_ids(vocabulary)
    ours, _ = saved_and_loaded(vocabulary, tmp_path / "again")
    assert isinstance(ours, SoftmaxVocabulary)
    assert softmax_counts(ours) == softmax_counts(vocabulary)


def test_without_counts_none_are_loaded(vocabulary_file, tmp_path):
    vocabulary = from_params(file=vocabulary_file("<S>", "</S>", "<UNK>", "the"))
    for loaded in saved_and_loaded(vocabulary, tmp_path / "vocabulary"):
        assert softmax_counts(loaded) is None
        assert softmax_ids(loaded) == softmax_ids(vocabulary)
        assert loaded.get_namespaces() == {"softmax_labels"}


def test_odd_words_survive_saving_and_loading(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(ODD_WORDS))
    vocabulary = from_params(text=str(tmp_path / "a.txt"))
    ids = softmax_ids(vocabulary)
    assert all(ids[word] > 2 for odd in ODD_WORDS for word in odd.split())
    for loaded in saved_and_loaded(vocabulary, tmp_path / "vocabulary"):
        assert softmax_ids(loaded) == ids
        assert softmax_counts(loaded) == softmax_counts(vocabulary)
    write_vocabulary(choose_words(count_words([tmp_path / "a.txt"])), tmp_path / "file.txt")
    assert softmax_ids(from_params(file=str(tmp_path / "file.txt"))) == ids


@pytest.mark.parametrize("space", [chr(n) for n in range(0x3001) if chr(n).isspace()])
def test_no_word_holds_white_space(tmp_path, space):
    (tmp_path / "a.txt").write_text(f"left{space}right", newline="\n")
    vocabulary = from_params(text=str(tmp_path / "a.txt"))
    assert words(vocabulary)[3:] == ["left", "right"]


def test_a_loaded_vocabulary_gives_the_same_batches(text, tmp_path):
    vocabulary = from_params(text=str(text))
    targets = []
    for vocab in (vocabulary, *saved_and_loaded(vocabulary, tmp_path / "vocabulary")):
        loader = BilmDataLoader(BilmReader(), text)
        loader.index_with(vocab)
        targets.append([batch["forward_targets"].tolist() for batch in loader])
    assert targets[0] == targets[1] == targets[2]


def test_a_vocabulary_can_be_sent_to_a_worker(text):
    vocabulary = from_params(text=str(text))
    sent = pickle.loads(pickle.dumps(vocabulary))
    assert softmax_ids(sent) == softmax_ids(vocabulary)
    assert softmax_counts(sent) == softmax_counts(vocabulary)


def test_the_counts_of_another_vocabulary_are_unknown():
    other = Vocabulary()
    assert softmax_counts(other) is None
    with pytest.raises(ConfigurationError, match="`softmax_labels` .* begin with <S>, </S>, <UNK>"):
        softmax_ids(other)
    assert not other.get_namespaces()


def test_a_file_that_could_not_be_written_leaves_nothing(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_vocabulary([("\ud800", 1)], tmp_path / "vocabulary.txt")
    assert list(tmp_path.iterdir()) == []
