from pathlib import Path

import pytest
import torch
from allennlp.common import Params
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.data.tokenizers import Token
from allennlp.models import Model

from elmo_plugin.bilm.character_indexer import CharacterIndexer
from elmo_plugin.tasks.snli import SnliReader
from tests.tasks.batches import learn, make_batch, placement
from tests.tasks.snli.oracle import restated

FIXTURES = Path(__file__).parents[3] / "fixtures"
CORPUS = FIXTURES / "corpora/snli"


def build(vocab, **settings) -> Model:
    """A small model of random weights."""
    return Model.from_params(
        vocab=vocab,
        params=Params(
            {
                "type": "elmo-snli",
                "text_field_embedder": {
                    "token_embedders": {"words": {"type": "embedding", "embedding_dim": 6}}
                },
                "encoder": {"type": "elmo-bilstm", "hidden_size": 5},
                "composition_encoder": {"type": "elmo-bilstm", "hidden_size": 4},
                "feedforward_dim": 7,
                **settings,
            }
        ),
    )


@pytest.fixture(scope="module")
def reader():
    return SnliReader({"words": SingleIdTokenIndexer(), "elmo": CharacterIndexer()})


@pytest.fixture(scope="module")
def instances(reader):
    return list(reader.read(CORPUS / "snli_1.0_train.jsonl"))


def pair(reader, premise, hypothesis, label="neutral"):
    words = ([Token(word) for word in text.split()] for text in (premise, hypothesis))
    instance = reader.text_to_instance(*words, label)
    reader.apply_token_indexers(instance)
    return instance


@pytest.mark.parametrize("at", [None, "input", "output", "both"])
def test_the_answer_is_that_of_the_equations(vocab, instances, at):
    torch.manual_seed(0)
    encoder = {"type": "lstm", "hidden_size": 5, "bidirectional": True}
    settings = {} if at is None else {"placement": placement(at, layer_norm=True)}
    model = build(vocab, encoder=encoder, composition_encoder=encoder, **settings).double().eval()
    # Embeddings and scores so large that the softmax over tokens is far from even.
    model.text_field_embedder.token_embedder_words.weight.data *= 8
    with torch.no_grad():
        batch = make_batch(vocab, instances[4:15], elmo=at is not None)
        answers = model(**batch)["probabilities"]
        for number, instance in enumerate(instances[4:15]):
            alone = make_batch(vocab, [instance], elmo=at is not None)
            texts, at_output = [], []
            for name in ("premise", "hypothesis"):
                text = model.placement(alone[name])
                words = model.text_field_embedder.token_embedder_words.weight[
                    alone[name]["words"]["tokens"][0]
                ]
                elmo = words[:, :0] if text.input_vectors is None else text.input_vectors[0]
                texts.append(list(torch.cat([words, elmo], dim=1)))
                nothing = words[:, :0]
                output = nothing if text.output_vectors is None else text.output_vectors[0]
                at_output.append(list(output))
            torch.testing.assert_close(
                answers[number], restated(model, texts, at_output), rtol=1e-9, atol=1e-12
            )


def test_padding_and_order_of_the_batch_do_not_matter(vocab, instances, reader):
    model = build(vocab, placement=placement("both", layer_norm=True)).eval()
    long = pair(reader, "a dog " * 20, "A dog is asleep . " * 9)
    with torch.no_grad():
        alone = model(**make_batch(vocab, instances[:6]))["probabilities"]
        padded = model(**make_batch(vocab, [long, *instances[5::-1]]))["probabilities"]
    torch.testing.assert_close(padded[1:].flip(0), alone)


def test_scores_far_below_zero_still_outweigh_padding(vocab):
    from elmo_plugin.tasks.snli.model import _comparisons

    # One premise of one token, one hypothesis of one token and padding; their product is -400.
    encoded = torch.tensor([[[20.0], [0.0]], [[-20.0], [0.0]]])
    mask = torch.tensor([[True, False], [True, False]])
    assert _comparisons(encoded, mask).tolist() == [
        [20.0, -20.0, 40.0, -400.0],
        [-20.0, 20.0, -40.0, -400.0],
    ]


@pytest.mark.parametrize(
    "texts",
    [
        [("A dog .", "")],
        [("", "A dog .")],
        [("", "")],
        [("A dog .", ""), ("", "A cat is asleep .")],
    ],
)
def test_empty_texts_give_numbers_and_gradients(vocab, reader, texts):
    model = build(vocab, placement=placement("both", layer_norm=True))
    outputs = model(**make_batch(vocab, [pair(reader, *text) for text in texts]))
    outputs["loss"].backward()
    assert outputs["probabilities"].isfinite().all()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert gradients and all(gradient.isfinite().all() for gradient in gradients)


def test_an_empty_text_does_not_change_its_neighbours(vocab, reader, instances):
    model = build(vocab, placement=placement("both", layer_norm=True)).eval()
    with torch.no_grad():
        alone = model(**make_batch(vocab, instances[:3]))["probabilities"]
        beside = model(**make_batch(vocab, [*instances[:3], pair(reader, "A dog .", "")]))
    torch.testing.assert_close(beside["probabilities"][:3], alone)


def test_half_precision_gives_nearly_the_same(vocab, instances):
    model = build(vocab, placement=placement("both", layer_norm=True)).eval()
    batch = make_batch(vocab, instances[:6])
    with torch.no_grad():
        exact = model(**batch)["probabilities"]
        with torch.autocast("cpu", torch.bfloat16):
            nearly = model(**batch)["probabilities"]
    torch.testing.assert_close(nearly.float(), exact, rtol=0, atol=0.02)


@pytest.mark.parametrize(
    "at, encoder_input, compared", [(None, 6, 40), ("input", 38, 40), ("output", 6, 168)]
)
def test_widths_follow_the_placement(vocab, at, encoder_input, compared):
    model = build(vocab, placement=placement(at, layer_norm=True)) if at else build(vocab)
    assert model.encoder.get_input_dim() == encoder_input
    assert model.projection.in_features == compared


def test_the_penalties_are_what_the_experiment_says(vocab):
    params = Params.from_file(FIXTURES.parent / "experiments/snli_elmo.jsonnet")
    regularizer = params["model"]["regularizer"].as_dict(quiet=True)
    model = build(vocab, placement=placement("both", layer_norm=True), regularizer=regularizer)
    encoders = [
        layer[0]
        for encoder in (model.encoder, model.composition_encoder)
        for layer in (encoder.forward_layers, encoder.backward_layers)
    ]
    matrices = [matrix.weight for lstm in encoders for matrix in (lstm.input, lstm.recurrent)]
    matrices += [model.projection.weight, model.classifier[1].weight, model.classifier[4].weight]
    squares = sum((matrix.detach().double() ** 2).sum().item() for matrix in matrices)
    with torch.no_grad():
        for mix in model.placement.elmo.mixes:
            mix.layer_scores.copy_(torch.tensor([3.0, 0.0, -4.0]))
            mix.gamma.fill_(100.0)
    # No bias, no embedding, no gamma: 1e-4 on the matrices, lambda on two times 9 + 16.
    expected = 1e-4 * squares + 0.001 * 2 * 25
    assert model.get_regularization_penalty().item() == pytest.approx(expected, rel=1e-5)


def test_the_baseline_has_no_penalty(vocab):
    params = Params.from_file(FIXTURES.parent / "experiments/snli.jsonnet")
    assert "regularizer" not in params["model"] and "placement" not in params["model"]
    assert params["model"].get("attention_dropout") == 0.0


def test_dropout_is_the_same_for_all_tokens_of_a_text(vocab, instances):
    torch.manual_seed(0)
    model = build(vocab)
    # After ReLU, only dropout makes zeros.
    torch.nn.init.constant_(model.projection.bias, 100.0)
    seen = []
    for encoder in (model.encoder, model.composition_encoder):
        encoder.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(**make_batch(vocab, instances[:4], elmo=False))
    for texts in seen:
        for text in texts:
            real = text[(text != 0).any(dim=1)]
            assert bool(((real == 0).all(dim=0) | (real != 0).all(dim=0)).all())
        assert 0.2 < float((texts[:, 0] == 0).float().mean()) < 0.8


def test_the_model_can_learn_pairs_by_heart(vocab, instances):
    torch.manual_seed(1)
    lstm = {"type": "elmo-bilstm", "hidden_size": 48}
    model = build(
        vocab,
        placement=placement("both", layer_norm=True),
        encoder=lstm,
        composition_encoder=lstm,
        feedforward_dim=48,
        dropout=0.0,
    )
    batch = make_batch(vocab, instances[:20])
    assert learn(model, [batch], rate=0.003, num_epochs=40) == {"accuracy": 1.0}
