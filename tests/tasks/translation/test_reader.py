from pathlib import Path

import pytest
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary
from allennlp.data.dataset_readers.dataset_reader import WorkerInfo

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.tasks.translation import TranslationReader

FIXTURES = Path(__file__).parents[3] / "fixtures"


@pytest.fixture
def path(tmp_path):
    (tmp_path / "x.en").write_text("A dog's bone.\nTwo men sit.\n")
    (tmp_path / "x.de").write_text("Der T-Shirt-Hund, z.B. er.\nZwei Männer.\n")
    return tmp_path / "x.en"


def words(field):
    return [token.text for token in field]


def test_an_instance_holds_both_sentences_and_the_translation_as_it_stood(path):
    instance = list(TranslationReader().read(path))[0]
    assert set(instance.fields) == {"source", "target", "metadata"}
    assert words(instance["source"]) == ["A", "dog", "'s", "bone", "."]
    target = ["@start@", "Der", "T-Shirt-Hund", ",", "z.B.", "er", ".", "@end@"]
    assert words(instance["target"]) == target
    assert instance["metadata"].metadata == {
        "words": ["A", "dog", "'s", "bone", "."],
        "target": "Der T-Shirt-Hund, z.B. er.",
    }


def test_a_sentence_without_a_translation_is_an_instance_too(path):
    reader = TranslationReader()
    instance = reader.text_to_instance(reader.tokens("Two men."))
    assert set(instance.fields) == {"source", "metadata"}
    assert instance["metadata"].metadata == {"words": ["Two", "men", "."], "target": None}
    reader.apply_token_indexers(instance)


def test_the_words_of_the_languages_are_in_vocabularies_of_their_own(path):
    vocab = Vocabulary.from_instances(TranslationReader().read(path))
    assert "dog" in vocab.get_token_to_index_vocabulary("tokens")
    assert "Zwei" not in vocab.get_token_to_index_vocabulary("tokens")
    target = vocab.get_token_to_index_vocabulary("target_tokens")
    assert {"Zwei", "@start@", "@end@"} < set(target) and "dog" not in target


def test_the_name_of_the_file_says_where_the_translations_are(path, tmp_path):
    back = TranslationReader(source_language="de", target_language="en")
    (first, _) = back.read(tmp_path / "x.de")
    assert words(first["target"]) == ["@start@", "A", "dog", "'s", "bone", ".", "@end@"]
    with pytest.raises(ConfigurationError, match="ends with .en, found .*x.txt. The translations"):
        list(TranslationReader().read(tmp_path / "x.txt"))
    with pytest.raises(FileNotFoundError, match="x.fr"):
        list(TranslationReader(target_language="fr").read(path))
    path.with_name("x.qq").write_text("a\nb\n")
    with pytest.raises(ConfigurationError, match="spaCy can tokenise, .* found 'qq'"):
        list(TranslationReader(target_language="qq").read(path))


def test_workers_share_the_pairs_and_at_most_max_instances_are_read():
    path = FIXTURES / "corpora/mt/val.en"

    def metadata(reader):
        return [str(instance["metadata"].metadata) for instance in reader.read(path)]

    parts = []
    for number in (0, 1):
        reader = TranslationReader()
        reader._set_worker_info(WorkerInfo(2, number))
        parts += metadata(reader)
    every = metadata(TranslationReader())
    assert sorted(parts) == sorted(every) and len(every) == 24
    assert metadata(TranslationReader(max_instances=3)) == every[:3]
