import shutil
import tarfile

import pytest
import spacy
from allennlp.models import load_archive
from allennlp.predictors import Predictor
from spacy.tokens import Doc, Span
from spacy.training import Example

from elmo_plugin.corpora.conll2012 import read_documents, read_sentences
from elmo_plugin.util.errors import ConfigurationError
from tests.trained import FIXTURES

TEXT = "Ada lives in London. Tom met Anna in Paris!"
SENTENCES = [["Ada", "lives", "in", "London", "."], ["Tom", "met", "Anna", "in", "Paris", "!"]]
SRL = FIXTURES / "corpora/srl/train.gold_conll"
COREF = FIXTURES / "corpora/coref/train.gold_conll"


@pytest.fixture(scope="session")
def predictor_of(archive_of):
    return lambda task: Predictor.from_archive(load_archive(archive_of(task)))


def entities(doc):
    return [(entity.start, entity.end, entity.label_) for entity in doc.ents]


def frames(doc):
    return [
        [(span.start, span.end, span.label_) for span in (frame.verb, *frame.arguments)]
        for frame in doc._.srl
    ]


def clusters(doc):
    return [[(span.start, span.end) for span in cluster] for cluster in doc._.coref_clusters]


def documents(nlp):
    """The documents of the fixture, with its sentences."""
    for document in read_documents(COREF):
        sentences = [list(sentence.words) for sentence in document.sentences]
        starts = [n == 0 for words in sentences for n in range(len(words))]
        words = [word for words in sentences for word in words]
        yield sentences, Doc(nlp.vocab, words=words, sent_starts=starts)


def test_entities_are_those_of_the_tasks_predictor(pipeline, archive_of, predictor_of):
    doc = pipeline("elmo_ner", archive=archive_of("ner"))(TEXT)
    assert [[token.text for token in sent] for sent in doc.sents] == SENTENCES
    expected, first = [], 0
    for words in SENTENCES:
        for entity in predictor_of("ner").predict_json({"tokens": words})["entities"]:
            expected.append((first + entity["start"], first + entity["end"] + 1, entity["type"]))
        first += len(words)
    assert entities(doc) == expected
    assert len(expected) > 1


def test_the_model_that_comes_with_the_project_is_the_default(pipeline, tmp_path):
    nlp = pipeline("elmo_ner")
    text = "Ada Lovelace was born in London."
    expected = [("Ada Lovelace", "PER"), ("London", "LOC")]
    assert [(entity.text, entity.label_) for entity in nlp(text).ents] == expected
    nlp.to_disk(tmp_path / "pipeline")
    again = spacy.load(tmp_path / "pipeline")
    assert [(entity.text, entity.label_) for entity in again(text).ents] == expected


def test_earlier_entities_are_kept(pipeline, archive_of):
    nlp = pipeline("elmo_ner", archive=archive_of("ner"))
    found = entities(nlp(TEXT))
    start, end, _ = found[0]
    doc = nlp.make_doc(TEXT)
    doc.ents = [Span(doc, start, end, "MINE")]
    assert entities(nlp(doc)) == [(start, end, "MINE"), *found[1:]]


def test_the_model_reads_batches_and_their_size_changes_nothing(pipeline, archive_of, monkeypatch):
    nlp = pipeline("elmo_ner", archive=archive_of("ner"))
    texts = [TEXT, "", "London", "Tom lives in Nairobi with Anna."] * 2
    alone = [entities(nlp(text)) for text in texts]
    predictor = nlp.get_pipe("elmo_ner").load()
    sizes = []
    predict = predictor.predict_batch_json

    def count(lines):
        sizes.append(len(lines))
        return predict(lines)

    monkeypatch.setattr(predictor, "predict_batch_json", count)
    assert [entities(doc) for doc in nlp.pipe(texts, batch_size=8)] == alone
    # Eight documents have eight sentences.
    assert sizes == [8]
    assert [entities(doc) for doc in nlp.pipe(texts, batch_size=4)] == alone
    assert sizes == [8, 4, 4]


def test_spacy_scores_entities(pipeline, archive_of):
    nlp = pipeline("elmo_ner", archive=archive_of("ner"))
    gold = [(e.start_char, e.end_char, e.label_) for e in nlp(TEXT).ents]
    example = Example.from_dict(nlp.make_doc(TEXT), {"entities": gold[1:]})
    scores = nlp.evaluate([example])
    assert scores["ents_r"] == 1.0
    assert scores["ents_p"] == pytest.approx((len(gold) - 1) / len(gold))


def test_frames_are_those_of_the_tasks_predictor(pipeline, archive_of, predictor_of):
    sentences = [list(sentence.words) for sentence in list(read_sentences(SRL))[:8]]
    nlp = pipeline("elmo_srl", archive=archive_of("srl"), predicates="all")
    nlp.remove_pipe("sentencizer")
    starts = [n == 0 for words in sentences for n in range(len(words))]
    doc = nlp(Doc(nlp.vocab, words=sum(sentences, []), sent_starts=starts))
    found, first, num_arguments = iter(frames(doc)), 0, 0
    for words in sentences:
        line = {"tokens": words, "predicates": "all"}
        for frame in predictor_of("srl").predict_json(line)["frames"]:
            verb, *arguments = next(found)
            place = first + frame["predicate"]
            assert verb == (place, place + 1, "V")
            tags = ["O"] * len(words)
            for start, end, label in arguments:
                tags[start - first : end - first] = [f"I-{label}"] * (end - start)
                tags[start - first] = f"B-{label}"
            assert tags == ["O" if tag.endswith("-V") else tag for tag in frame["tags"]]
            num_arguments += len(arguments)
        first += len(words)
    assert num_arguments and not list(found)


@pytest.mark.parametrize("annotation", ["tags", "pos"])
def test_verbs_are_what_the_pipeline_has_tagged(pipeline, archive_of, annotation):
    nlp = pipeline("elmo_srl", archive=archive_of("srl"))
    given = {"tags": ["NNP", "VBD", "TO", "VB"], "pos": ["PROPN", "VERB", "PART", "AUX"]}
    words = ["Ada", "wanted", "to", "be"]
    doc = nlp(Doc(nlp.vocab, words=words, **{annotation: given[annotation]}))
    assert [frame.verb.text for frame in doc._.srl] == ["wanted", "be"]


def test_without_tags_the_error_says_what_is_missing(pipeline, archive_of):
    nlp = pipeline("elmo_srl", archive=archive_of("srl"))
    with pytest.raises(ConfigurationError, match="elmo_srl: expected a document with tags.*Ada"):
        nlp(TEXT)


def test_an_error_handler_of_spacy_can_skip_a_document(pipeline, archive_of):
    nlp = pipeline("elmo_srl", archive=archive_of("srl"))
    failed = []
    nlp.set_error_handler(lambda name, pipe, docs, error: failed.extend(docs))
    good = Doc(nlp.vocab, words=["Ada", "slept"], tags=["NNP", "VBD"])
    kept = list(nlp.pipe([nlp.make_doc(TEXT), good], batch_size=1))
    assert [doc.text for doc in kept] == ["Ada slept "]
    assert [doc.text for doc in failed] == [TEXT]


def test_clusters_are_those_of_the_tasks_predictor(pipeline, archive_of, predictor_of):
    nlp = pipeline("elmo_coref", archive=archive_of("coref"))
    predictor, num_clusters = predictor_of("coref"), 0
    given, expected = [], []
    for sentences, doc in documents(nlp):
        firsts = [sum(map(len, sentences[:number])) for number in range(len(sentences))]
        found = predictor.predict_json({"sentences": sentences})["clusters"]
        expected.append(
            [
                [(firsts[m["sentence"]] + m["start"], firsts[m["sentence"]] + m["end"] + 1)]
                for cluster in found
                for m in cluster
            ]
        )
        given.append(doc)
        num_clusters += len(found)
    given.append(nlp.make_doc(""))
    expected.append([])
    # The sentencizer leaves the given boundaries alone.
    nlp.remove_pipe("sentencizer")
    for doc, mentions in zip(nlp.pipe(given), expected, strict=True):
        assert [[span] for cluster in clusters(doc) for span in cluster] == mentions
    assert num_clusters


@pytest.mark.parametrize("store", ["disk", "bytes"])
def test_a_stored_pipeline_needs_no_other_file(archive_of, tmp_path, store):
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    for task, settings in (("ner", {}), ("srl", {"predicates": "all"}), ("coref", {})):
        archive = shutil.copy(archive_of(task), str(tmp_path / f"{task}.tar.gz"))
        nlp.add_pipe(f"elmo_{task}", config={"archive": archive, **settings})
    nlp.to_disk(tmp_path / "stored")
    data = nlp.to_bytes()
    for task in ("ner", "srl", "coref"):
        (tmp_path / f"{task}.tar.gz").unlink()
    (tmp_path / "stored").rename(tmp_path / "moved")
    if store == "disk":
        again = spacy.load(tmp_path / "moved")
    else:
        again = spacy.util.load_model_from_config(nlp.config).from_bytes(data)
    again.to_disk(tmp_path / "moved")
    for other in (again, spacy.load(tmp_path / "moved")):
        for show in (entities, frames, clusters):
            assert show(other(TEXT)) == show(nlp(TEXT))


def test_what_is_stored_is_an_archive_of_allennlp(pipeline, archive_of, predictor_of, tmp_path):
    pipeline("elmo_ner", archive=archive_of("ner")).to_disk(tmp_path)
    stored = tmp_path / "elmo_ner/model.tar.gz"
    with tarfile.open(stored) as files, tarfile.open(archive_of("ner")) as given:
        assert sorted(files.getnames()) == sorted(given.getnames())
    line = {"tokens": SENTENCES[1]}
    predictor = Predictor.from_archive(load_archive(stored))
    assert predictor.predict_json(line) == predictor_of("ner").predict_json(line)


def test_a_document_keeps_its_frames_and_clusters_when_it_is_stored(pipeline, archive_of):
    nlp = pipeline("elmo_srl", archive=archive_of("srl"), predicates="all")
    nlp.add_pipe("elmo_coref", config={"archive": str(archive_of("coref"))})
    doc = nlp(TEXT)
    again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert frames(again) == frames(doc) and frames(doc)
    assert clusters(again) == clusters(doc)


def test_an_unprocessed_document_has_no_frames_and_no_clusters(pipeline, archive_of):
    doc = spacy.blank("en")(TEXT)
    assert doc._.srl == [] and doc._.coref_clusters == []


@pytest.mark.parametrize(
    "component, settings, message",
    [
        ("srl", {"predicates": "some"}, "one of verbs, all, found 'some'"),
        ("srl", {"predicates": "all"}, "expected an archive of elmo-srl.*of elmo-ner"),
        ("task", {"archive": ""}, "no trained model of any task comes with the project"),
    ],
)
def test_a_wrong_setting_is_named(pipeline, archive_of, component, settings, message):
    settings = {"archive": archive_of("ner"), **settings}
    with pytest.raises(ConfigurationError, match=message):
        pipeline(f"elmo_{component}", **settings)(TEXT)


def test_any_task_has_a_component(pipeline, archive_of, predictor_of):
    doc = pipeline("elmo_task", archive=archive_of("sst"))(TEXT)
    lines = [{"tokens": words} for words in SENTENCES]
    for found, expected in zip(doc._.elmo_task, predictor_of("sst").predict_batch_json(lines)):
        assert (found["tokens"], found["label"]) == (expected["tokens"], expected["label"])
    with pytest.raises(ConfigurationError, match="SnliPredictor reads pairs of texts"):
        pipeline("elmo_task", archive=archive_of("snli"))(TEXT)
