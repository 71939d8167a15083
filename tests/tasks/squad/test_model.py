from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.data import DatasetReader, Vocabulary
from allennlp.models import Model

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.corpora.squad import Answer
from elmo_plugin.tasks.squad import SquadReader
from elmo_plugin.tasks.squad.metric import exact_match, f1
from tests.tasks.batches import learn, make_batch, placement
from tests.tasks.squad import oracle

FIXTURES = Path(__file__).parents[3] / "fixtures"
CORPUS = FIXTURES / "corpora/squad"
EXPERIMENT = Params.from_file(FIXTURES / "experiments/squad_elmo.jsonnet").as_dict(quiet=True)


def build(vocab: Vocabulary, **settings) -> Model:
    """A small model of random weights."""
    embedder = EXPERIMENT["model"]["text_field_embedder"]["token_embedders"]["characters"]
    return Model.from_params(
        vocab=vocab,
        params=Params(
            {
                "type": "elmo-squad",
                "text_field_embedder": {
                    "token_embedders": {
                        "words": {"type": "embedding", "embedding_dim": 6},
                        "characters": {**embedder, "embedding_dim": 4, "num_filters": 3},
                    }
                },
                "encoder": {"type": "elmo-bigru", "hidden_size": 5},
                **settings,
            }
        ),
    )


def make_reader(**settings) -> SquadReader:
    params = {**EXPERIMENT["dataset_reader"], **settings}
    return DatasetReader.from_params(Params(params).duplicate())


@pytest.fixture(scope="module")
def reader():
    return make_reader()


@pytest.fixture(scope="module")
def instances(reader):
    return list(reader.read(CORPUS / "train-v1.1.json"))


def asked(reader, question, passage, answers=()):
    instance = reader.text_to_instance(question, passage, answers)
    reader.apply_token_indexers(instance)
    return instance


# What is added to all scores of a softmax alike changes nothing: gradients are 0 or rounding.
WITHOUT_EFFECT = {
    "bi_attention.similarity._bias",
    "start_projection.bias",
    "end_projection.bias",
}


def restated(model, alone):
    """The two sets of logits of one question, the attentions by hand."""
    encoded = []
    for name in ("question", "passage"):
        text = model.placement(alone[name])
        embedded = text.at_input(model.text_field_embedder(text.words))
        mask = torch.ones(embedded.shape[:2], dtype=torch.bool)
        encoded.append(text.at_output(model.encoder(embedded, mask))[0].tolist())
    merged = torch.tensor(
        [oracle.bi_attention(model.bi_attention, encoded[1], encoded[0])], dtype=torch.float64
    )
    within = model.residual_encoder(merged, mask)[0].tolist()
    modelled = merged + torch.tensor(oracle.self_attention(model.self_attention, within))
    started = model.start_encoder(modelled, mask)
    ended = model.end_encoder(torch.cat([modelled, started], dim=2), mask)
    return model.start_projection(started)[0, :, 0], model.end_projection(ended)[0, :, 0]


@pytest.mark.parametrize("at", [None, "input", "output", "both"])
def test_the_answer_is_that_of_the_equations(vocab, instances, at):
    torch.manual_seed(0)
    settings = {} if at is None else {"placement": placement(at)}
    encoder = {"type": "gru", "hidden_size": 5, "bidirectional": True}
    model = build(vocab, encoder=encoder, max_answer_length=4, num_best=7, **settings)
    model = model.double().eval()
    chosen = instances[3:9:2]
    with torch.no_grad():
        # So large that answers are not equally likely.
        model.start_projection.weight.mul_(20)
        model.end_projection.weight.mul_(20)
        batch = model(**make_batch(vocab, chosen, elmo=at is not None))
        losses = []
        for row, instance in enumerate(chosen):
            alone = make_batch(vocab, [instance], elmo=at is not None)
            starts, ends = restated(model, alone)
            expected = oracle.spans(starts.tolist(), ends.tolist(), 4)[:7]
            found = batch["best_spans"][row].tolist()
            assert found == [[first, last] for _, first, last in expected]
            probabilities = torch.tensor([each[0] for each in expected], dtype=torch.float64)
            torch.testing.assert_close(batch["best_span_probabilities"][row], probabilities)
            first, last = alone["answer_span"][0]
            losses.append(-starts.log_softmax(0)[first] - ends.log_softmax(0)[last])
    torch.testing.assert_close(batch["loss"], torch.stack(losses).mean())


def test_padding_and_order_of_the_batch_do_not_matter(vocab, instances, reader):
    model = build(vocab, placement=placement("both")).eval()
    chosen = instances[:60:6]
    others = [
        asked(reader, "Who ? " * 30, "A passage far longer than all . " * 20, [Answer("A", 0)]),
        asked(reader, "Why?", "Because", [Answer("Because", 0)]),
    ]
    name = "best_span_probabilities"
    with torch.no_grad():
        padded = model(**make_batch(vocab, [*others, *chosen[::-1]]))[name]
        torch.testing.assert_close(padded[2:].flip(0), model(**make_batch(vocab, chosen))[name])
        for row, instance in enumerate(others):
            torch.testing.assert_close(padded[row], model(**make_batch(vocab, [instance]))[name][0])


@pytest.mark.parametrize("by_sentence", [False, True])
def test_each_passage_is_encoded_once_for_all_its_questions(vocab, by_sentence):
    model = build(vocab, placement=placement("both")).eval()
    reader, sizes = make_reader(by_sentence=by_sentence), []
    passages = ["Ada lives here. She writes.", "It rains."]
    asked_of = [
        ("Who?", passages[0]),
        ("What?", passages[1]),
        ("Where?", passages[0]),
        ("What does she do?", passages[0]),
    ]
    instances = [asked(reader, *each, [Answer(each[1][:2], 0)]) for each in asked_of]
    model.encoder.register_forward_hook(lambda _, inputs, __: sizes.append(len(inputs[0])))
    name = "best_span_probabilities"
    with torch.no_grad():
        together = model(**make_batch(vocab, instances))[name]
        assert sizes == [4, 2]
        for row, instance in enumerate(instances):
            torch.testing.assert_close(
                together[row], model(**make_batch(vocab, [instance]))[name][0]
            )
    sizes.clear()
    model.train()(**make_batch(vocab, instances))
    assert sizes == [4, 4]


def test_a_passage_of_one_token_has_one_answer(vocab, reader):
    model = build(vocab, placement=placement("both")).eval()
    instance = asked(reader, "Why?", "Because")
    outputs = model.forward_on_instance(instance)
    assert outputs["answer"] == "Because"
    assert outputs["best_spans"].tolist() == [[0, 0]] + [[-1, -1]] * 19
    assert outputs["best_span_probabilities"].tolist() == [1.0] + [0.0] * 19
    learned = model.train()(**make_batch(vocab, [instance]), answer_span=torch.zeros(1, 2).long())
    learned["loss"].backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert gradients and all(gradient.isfinite().all() for gradient in gradients)


def test_every_parameter_learns(vocab, instances):
    model = build(vocab, placement=placement("both"))
    model(**make_batch(vocab, instances[:8]))["loss"].backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            largest = float(parameter.grad.abs().max())
            assert largest < 1e-6 if name in WITHOUT_EFFECT else largest > 1e-6, name


def test_sentences_can_be_read_apart(vocab, instances):
    model = build(vocab, placement=placement("both")).eval()
    apart = list(make_reader(by_sentence=True).read(CORPUS / "train-v1.1.json"))
    batch = make_batch(vocab, apart[:4])
    with torch.no_grad():
        whole = model(**make_batch(vocab, instances[:4]))["loss"]
        assert not torch.allclose(model(**batch)["loss"], whole)
        batch["passage_sentences"].clamp_(max=0)
        torch.testing.assert_close(model(**batch)["loss"], whole)


def test_the_baseline_ignores_sentence_boundaries(vocab, instances):
    model = build(vocab).eval()
    apart = list(make_reader(by_sentence=True).read(CORPUS / "train-v1.1.json"))
    with torch.no_grad():
        whole = model(**make_batch(vocab, instances[:4], elmo=False))["loss"]
        assert torch.equal(model(**make_batch(vocab, apart[:4], elmo=False))["loss"], whole)


def test_answers_are_pieces_of_the_text_and_scored_against_all_gold_answers(vocab):
    model = build(vocab, placement=placement("both")).eval()
    instances = list(make_reader().read(CORPUS / "dev-v1.1.json"))
    outputs = model.forward_on_instances(instances)
    totals = {"em": 0.0, "f1": 0.0}
    for instance, output in zip(instances, outputs):
        metadata = instance["metadata"].metadata
        first, last = output["best_spans"][0]
        offsets = metadata["token_offsets"]
        answer = metadata["passage"][offsets[first][0] : offsets[last][1]]
        assert output["answer"] == answer and answer in metadata["passage"]
        for name, score in (("em", exact_match), ("f1", f1)):
            totals[name] += max(score(answer, gold) for gold in metadata["answers"])
    expected = {name: pytest.approx(total / 20) for name, total in totals.items()}
    assert model.get_metrics(reset=True) == expected
    assert model.get_metrics() == {}


@pytest.mark.parametrize("seed", range(4))
def test_half_precision_gives_nearly_the_same(vocab, instances, seed):
    torch.manual_seed(seed)
    model = build(vocab, placement=placement("both")).eval()
    batch = make_batch(vocab, instances[:6])
    with torch.no_grad():
        # Of a model that is sure of something: the loss of one that guesses hardly moves.
        model.start_projection.weight.mul_(60)
        model.end_projection.weight.mul_(60)
        exact = model(**batch)
        with torch.autocast("cpu", torch.bfloat16):
            nearly = model(**batch)
    torch.testing.assert_close(nearly["loss"].float(), exact["loss"], rtol=0.02, atol=0)
    found, expected = (each["best_span_probabilities"] for each in (nearly, exact))
    torch.testing.assert_close(found, expected, rtol=0, atol=0.05)


@pytest.mark.parametrize(
    "at, encoder_input, attended", [(None, 9, 10), ("input", 41, 10), ("output", 9, 42)]
)
def test_widths_follow_the_placement(vocab, at, encoder_input, attended):
    model = build(vocab, placement=placement(at)) if at else build(vocab)
    assert model.encoder.get_input_dim() == encoder_input
    assert model.bi_attention.merge.in_features == 4 * attended
    assert model.bi_attention.merge.out_features == model.self_attention.merge.out_features == 10


def test_dropout_is_the_same_for_all_tokens_of_a_text(vocab, instances):
    torch.manual_seed(0)
    model, seen = build(vocab, dropout=0.5), []
    # After ReLU, only dropout makes zeros.
    torch.nn.init.constant_(model.bi_attention.merge.bias, 100.0)
    for module in (model.encoder, model.residual_encoder):
        module.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(**make_batch(vocab, instances[:4], elmo=False))
    assert len(seen) == 3
    for vectors in seen:
        is_dropped = (vectors == 0).all(dim=1)
        assert 0 < float(is_dropped.float().mean()) < 1
    attended = seen[2] == 0
    assert torch.equal(attended.all(dim=1), attended.any(dim=1))
    assert 0.2 < float(attended.float().mean()) < 0.8
    # Question and passage: word vectors, which come last, are nowhere zero by themselves.
    for vectors in seen[:2]:
        is_kept = vectors[..., -6:] != 0
        is_token = is_kept.any(dim=2, keepdim=True)
        assert torch.equal(is_kept & is_token, is_kept.any(dim=1, keepdim=True) & is_token)


def test_the_model_can_learn_answers_by_heart(vocab, instances):
    torch.manual_seed(1)
    model = build(
        vocab,
        placement=placement("both"),
        encoder={"type": "elmo-bigru", "hidden_size": 24},
        dropout=0.0,
    )
    batch = make_batch(vocab, instances[:8])
    assert learn(model, [batch], rate=0.01, num_epochs=50) == {"em": 1.0, "f1": 1.0}


@pytest.mark.parametrize("setting", ["max_answer_length", "num_best"])
def test_max_answer_length_and_num_best_of_0_are_refused(vocab, setting):
    with pytest.raises(ConfigurationError, match="of at least 1, found .*0"):
        build(vocab, **{setting: 0})
