import json
import shutil
import tarfile

import pytest
import spacy
from allennlp.models import load_archive
from allennlp.predictors import Predictor
from spacy import displacy
from spacy.tokens import Doc, Span
from spacy.training import Example

from elmo_plugin.corpora.conll2012 import read_documents, read_sentences
from elmo_plugin.corpora.tag_spans import tags_to_spans
from elmo_plugin.util.errors import ConfigurationError
from tests.trained import FIXTURES

TEXT = "Ada lives in London. Tom met Anna in Paris!"
COREFERENT = "Anna lost her keys. She was late."
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


def expected(task, predictor, sentences):
    """What the component sets, from what the predictor says about each sentence."""
    firsts = [sum(map(len, sentences[:number])) for number in range(len(sentences))]

    def place(number, start, end):
        return firsts[number] + start, firsts[number] + end + 1

    if task == "coref":
        found = predictor.predict_json({"sentences": sentences})["clusters"] if sentences else []
        return [[place(m["sentence"], m["start"], m["end"]) for m in each] for each in found]
    found = []
    for number, words in enumerate(sentences):
        output = predictor.predict_json({"tokens": words, "predicates": "all"})
        for entity in output.get("entities", ()):
            found.append((*place(number, entity["start"], entity["end"]), entity["type"]))
        for frame in output.get("frames", ()):
            verb, spans = frame["predicate"], tags_to_spans(frame["tags"])
            roles = [(*place(number, s.start, s.end), s.label) for s in spans if s.label != "V"]
            found.append([(*place(number, verb, verb), "V"), *roles])
    return found


DOCUMENTS = [
    [list(sentence.words) for sentence in document.sentences] for document in read_documents(COREF)
]


@pytest.mark.parametrize(
    "task, settings, show, given",
    [
        ("ner", {}, entities, [SENTENCES, []]),
        (
            "srl",
            {"predicates": "all"},
            frames,
            [[list(sentence.words) for sentence in list(read_sentences(SRL))[:8]]],
        ),
        ("coref", {}, clusters, [*DOCUMENTS, []]),
    ],
)
def test_a_component_sets_what_the_predictor_says(
    pipeline, archive_of, predictor_of, task, settings, show, given
):
    nlp = pipeline(f"elmo_{task}", archive=archive_of(task), **settings)
    # It would leave the given boundaries alone.
    nlp.remove_pipe("sentencizer")
    documents = []
    for sentences in given:
        starts = [number == 0 for words in sentences for number in range(len(words))]
        documents.append(Doc(nlp.vocab, words=sum(sentences, []), sent_starts=starts))
    wanted = [expected(task, predictor_of(task), sentences) for sentences in given]
    assert [show(doc) for doc in nlp.pipe(documents)] == wanted
    assert sum(map(len, wanted)) > 1


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


def test_spacy_scores_entities(pipeline, archive_of):
    nlp = pipeline("elmo_ner", archive=archive_of("ner"))
    gold = [(e.start_char, e.end_char, e.label_) for e in nlp(TEXT).ents]
    example = Example.from_dict(nlp.make_doc(TEXT), {"entities": gold[1:]})
    scores = nlp.evaluate([example])
    assert scores["ents_r"] == 1.0
    assert scores["ents_p"] == pytest.approx((len(gold) - 1) / len(gold))


@pytest.mark.parametrize("annotation", ["tags", "pos"])
def test_verbs_are_what_the_pipeline_has_tagged(pipeline, archive_of, annotation):
    nlp = pipeline("elmo_srl", archive=archive_of("srl"))
    given = {"tags": ["NNP", "VBD", "TO", "VB"], "pos": ["PROPN", "VERB", "PART", "AUX"]}
    words = ["Ada", "wanted", "to", "be"]
    doc = nlp(Doc(nlp.vocab, words=words, **{annotation: given[annotation]}))
    assert [frame.verb.text for frame in doc._.srl] == ["wanted", "be"]


def test_without_tags_the_shipped_tagger_finds_the_verbs(pipeline, archive_of):
    nlp = pipeline("elmo_srl", archive=archive_of("srl"))
    assert [frame.verb.text for frame in nlp(TEXT)._.srl] == ["lives", "met"]


@pytest.fixture
def no_tagger(monkeypatch):
    for module in ("tasks.srl.predictor", "integrations.for_spacy.tasks"):
        monkeypatch.setattr(f"elmo_plugin.{module}.shipped_archives", dict)


def test_without_tags_and_tagger_the_error_says_what_is_missing(pipeline, archive_of, no_tagger):
    nlp = pipeline("elmo_srl", archive=archive_of("srl"))
    with pytest.raises(ConfigurationError, match="elmo_srl: expected a document with tags.*Ada"):
        nlp(TEXT)


def test_an_error_handler_of_spacy_can_skip_a_document(pipeline, archive_of, no_tagger):
    nlp = pipeline("elmo_srl", archive=archive_of("srl"))
    failed = []
    nlp.set_error_handler(lambda name, pipe, docs, error: failed.extend(docs))
    good = Doc(nlp.vocab, words=["Ada", "slept"], tags=["NNP", "VBD"])
    kept = list(nlp.pipe([nlp.make_doc(TEXT), good], batch_size=1))
    assert [doc.text for doc in kept] == ["Ada slept "]
    assert [doc.text for doc in failed] == [TEXT]


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
    nlp.add_pipe("elmo_coref")
    doc = nlp(COREFERENT)
    unprocessed = nlp.make_doc(TEXT)
    assert unprocessed._.srl == [] and unprocessed._.coref_clusters == []
    again = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    assert frames(again) == frames(doc) and frames(doc)
    assert clusters(again) == clusters(doc) != []


@pytest.mark.parametrize(
    "component, settings, message",
    [
        ("srl", {"predicates": "some"}, "one of verbs, all, found 'some'"),
        ("srl", {"predicates": "all"}, "expected an archive of elmo-srl.*of elmo-ner"),
        ("task", {"archive": ""}, "no trained model of any task comes with the project"),
        ("ner", {"archive": "no/model.tar.gz"}, "no/model.tar.gz"),
    ],
)
def test_a_wrong_setting_is_named_when_the_component_is_added(
    pipeline, archive_of, component, settings, message
):
    settings = {"archive": archive_of("ner"), **settings}
    with pytest.raises((ConfigurationError, FileNotFoundError), match=message):
        pipeline(f"elmo_{component}", **settings)


def test_a_pipeline_of_a_config_reads_no_file_before_it_is_needed():
    config = spacy.blank("en").config
    config["nlp"]["pipeline"] = ["elmo_ner"]
    config["components"] = {"elmo_ner": {"factory": "elmo_ner", "archive": "no/model.tar.gz"}}
    nlp = spacy.util.load_model_from_config(config)
    with pytest.raises((ConfigurationError, FileNotFoundError), match="no/model.tar.gz"):
        nlp(TEXT)


def test_displacy_draws_entities_in_colours_and_clusters_as_spans(pipeline):
    doc = Doc(spacy.blank("en").vocab, words=["Ada", "slept"])
    doc.ents = [Span(doc, 0, 1, "PER")]
    assert "background: #aa9cfc" in displacy.render(doc, style="ent", jupyter=False)
    # The shipped model: one of the fixture corpus finds hardly any.
    nlp = pipeline("elmo_coref")
    doc = nlp(COREFERENT)
    assert [span.text for span in doc.spans["coref_clusters_1"]] == ["Anna", "her", "She"]
    assert list(doc.spans) == ["coref_clusters_1"]
    # Another call replaces them.
    assert clusters(nlp.get_pipe("elmo_coref")(doc)) == [[(0, 1), (2, 3), (5, 6)]]
    options = {"spans_key": "coref_clusters_1"}
    assert "Anna" in displacy.render(doc, style="span", options=options, jupyter=False)


def test_any_task_has_a_component(pipeline, archive_of, predictor_of):
    doc = pipeline("elmo_task", archive=archive_of("sst"))(TEXT)
    lines = [{"tokens": words} for words in SENTENCES]
    for found, expected in zip(doc._.elmo_task, predictor_of("sst").predict_batch_json(lines)):
        assert (found["tokens"], found["label"]) == (expected["tokens"], expected["label"])
    with pytest.raises(ConfigurationError, match="reads pairs of texts"):
        pipeline("elmo_task", archive=archive_of("snli"))


@pytest.mark.parametrize("tags", ["spans", "plain"])
def test_a_tagger_of_spans_finds_entities(pipeline, archive_of, tmp_path, tags):
    """The archive of NER, renamed as a tagger's: the network is the same."""
    folder = tmp_path / "tagger"
    shutil.unpack_archive(archive_of("ner"), folder)
    config = json.loads((folder / "config.json").read_text())
    for part in ("model", "dataset_reader", "validation_dataset_reader"):
        config[part].update(type="elmo-tagger", tags=tags)
    (folder / "config.json").write_text(json.dumps(config))
    archive = shutil.make_archive(str(tmp_path / "model"), "gztar", folder)
    if tags == "plain":
        with pytest.raises(ConfigurationError, match="of elmo-ner, found .* of elmo-tagger"):
            pipeline("elmo_ner", archive=archive)
        return
    found = entities(pipeline("elmo_ner", archive=archive)(TEXT))
    assert found == entities(pipeline("elmo_ner", archive=archive_of("ner"))(TEXT)) != []
