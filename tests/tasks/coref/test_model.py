import pytest
import torch
from allennlp.data import Token
from allennlp.models import Model

from elmo_plugin.util.errors import ConfigurationError
from tests.tasks.coref.oracle import every_span, greedy, linked, marginal_loss, pair_scores
from tests.tasks.small import build, make_batch, placement


def linking(model: Model) -> None:
    """Makes a model that knows nothing link some spans."""
    torch.nn.init.constant_(model.antecedent_scorer.feedforward.output_layer.bias, 0.5)
    torch.nn.init.normal_(model.antecedent_scorer.feedforward.output_layer.weight)


def tensors(model, instances):
    has_elmo = model.placement.input_dim + model.placement.output_dim > 0
    return make_batch(model.vocab, instances, elmo=has_elmo)


def document(reader, *sentences, clusters=(), speakers=None, genre="nw"):
    tokens = [[Token(word) for word in sentence.split()] for sentence in sentences]
    instance = reader.text_to_instance(
        tokens, speakers, genre, None if clusters is None else list(map(list, clusters))
    )
    reader.apply_token_indexers(instance)
    return instance


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"scoring": {"max_span_width": 0}}, "`max_span_width` of at least 1, found 0"),
        ({"scoring": {"max_antecedents": 0}}, "`max_antecedents` of at least 1, found 0"),
        ({"scoring": {"spans_per_word": 0.0}}, "`spans_per_word` above 0, found 0.0"),
        ({"scoring": {"dropout": 1.0}}, "`dropout` from 0 to below 1, found 1.0"),
        ({"max_training_sentences": 0}, "`max_training_sentences` of at least 1, found 0"),
    ],
)
def test_settings_with_which_nothing_could_be_scored_are_refused(vocab, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        build("coref", vocab, **settings)


@pytest.mark.parametrize("at", [None, "input", "output", "both"])
def test_spans_loss_and_clusters_are_those_of_plain_loops(vocab, instances, at):
    torch.manual_seed(0)
    model = build("coref", vocab, placement=placement(at)).double().eval()
    linking(model)
    seen = []
    blocks = model.antecedent_scorer.blocks
    model.antecedent_scorer.blocks = lambda top_spans: seen.append(top_spans) or blocks(top_spans)
    read = []
    model.mention_scorer.register_forward_hook(lambda *call: read.append(call[2][0]))
    for instance in instances[:3]:
        with torch.no_grad():
            output = model(**tensors(model, [instance]))
        lengths = [len(sentence) for sentence in instance["metadata"]["sentences"]]
        spans = every_span(lengths, 4)
        kept = [spans[which] for which in greedy(spans, read[-1], int(0.4 * sum(lengths)))]
        assert output["top_spans"] == [kept]

        named = enumerate(instance["metadata"]["clusters"])
        cluster_of = {tuple(mention): number for number, cluster in named for mention in cluster}
        speakers = instance["metadata"]["speakers"]
        for span, number in zip(kept, seen[-1].speakers.tolist()):
            assert number == list(dict.fromkeys(speakers)).index(speakers[span[0]])
        scores = pair_scores(model.antecedent_scorer, seen[-1])
        expected = marginal_loss(scores, [cluster_of.get(span) for span in kept])
        torch.testing.assert_close(output["loss"], expected)

        antecedents = [max(of_span, key=of_span.get, default=None) for of_span in scores]
        antecedents = [
            other if other is not None and scores[span][other] > 0 else None
            for span, other in enumerate(antecedents)
        ]
        clusters = [[kept[which] for which in cluster] for cluster in linked(antecedents)]
        assert output["clusters"] == [clusters] and clusters


def without_dropout(model: Model) -> Model:
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    return model


def cut(reader, instance, first, number):
    """Sentences of a document as a document of their own."""
    metadata = instance["metadata"]
    lengths = [len(sentence) for sentence in metadata["sentences"]]
    start, stop = sum(lengths[:first]), sum(lengths[: first + number])
    clusters = [
        [(a - start, b - start) for a, b in cluster if start <= a and b < stop]
        for cluster in metadata["clusters"]
    ]
    sentences = metadata["sentences"][first : first + number]
    return document(
        reader,
        *map(" ".join, sentences),
        clusters=[cluster for cluster in clusters if cluster],
        speakers=metadata["speakers"][start:stop],
        genre=metadata["genre"],
    )


def test_training_reads_consecutive_sentences_of_a_long_document(vocab, instances, reader):
    torch.manual_seed(0)
    instance = max(instances, key=lambda one: len(one["metadata"]["sentences"]))
    number = len(instance["metadata"]["sentences"])
    most = number - 2
    model = without_dropout(build("coref", vocab, max_training_sentences=most)).double().train()
    batch = tensors(model, [instance])
    with torch.no_grad():
        parts = [
            model(**tensors(model, [cut(reader, instance, first, most)]))["loss"].item()
            for first in range(3)
        ]
        found = {round(model(**batch)["loss"].item(), 6) for _ in range(40)}
        assert found == {round(part, 6) for part in parts} and len(found) == 3
        # Not when it is asked for answers.
        longer = without_dropout(build("coref", vocab, max_training_sentences=number)).double()
        longer.load_state_dict(model.state_dict())
        assert model.eval()(**batch)["top_spans"] == longer.eval()(**batch)["top_spans"]
        assert model(**batch)["loss"] == longer.train()(**batch)["loss"]


@pytest.mark.parametrize(
    "sentences, clusters",
    [
        (["He"], []),
        (["He slept ."], []),
        (["He", "slept", "."], [[(0, 0), (2, 2)]]),
        (["He met her"], [[(0, 0), (2, 2)]]),
        (["A man slept .", "He"], [[(0, 1), (4, 4)]]),
    ],
)
def test_the_smallest_documents_give_numbers_and_gradients(vocab, reader, sentences, clusters):
    instance = document(reader, *sentences, clusters=clusters)
    model = build("coref", vocab, placement=placement("both")).train()
    loss = model(**tensors(model, [instance]))["loss"]
    loss.backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert loss.isfinite() and gradients
    assert all(gradient.isfinite().all() for gradient in gradients)
    (spans,) = model.eval()(**tensors(model, [instance]))["top_spans"]
    assert len(spans) == max(1, int(0.4 * sum(len(text.split()) for text in sentences)))


def test_a_genre_that_training_never_saw_is_the_unknown_one(vocab, reader):
    model = build("coref", vocab).eval()
    outputs = [
        model(**tensors(model, [document(reader, "He saw him and her .", genre=genre)]))["loss"]
        for genre in ("zz", "yy", "nw")
    ]
    assert outputs[0] == outputs[1] != outputs[2]


def test_a_document_without_mentions_is_scored_and_teaches_that_there_are_none(vocab, reader):
    model = build("coref", vocab).eval()
    batch = tensors(model, [document(reader, "He saw him .", "He slept .")])
    assert model(**batch)["loss"] > 0
    assert model.get_metrics().keys() == {"coref_f1"}
    assert model.get_metrics(reset=True)["coref_recall"] == 0.0
    assert model.get_metrics() == {}
