from pathlib import Path

import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.data import Token, Vocabulary
from allennlp.models import Model

from elmo_plugin.bilm.character_indexer import CharacterIndexer
from elmo_plugin.tasks.sst import SstReader
from tests.tasks.batches import learn, make_batch, placement

FIXTURES = Path(__file__).parents[3] / "fixtures"
RELU = {"num_layers": 1, "activations": "relu"}
LSTM = {"type": "lstm", "hidden_size": 4, "bidirectional": True}


def build(vocab: Vocabulary, **settings) -> Model:
    """A small model of random weights."""
    return Model.from_params(
        vocab=vocab,
        params=Params(
            {
                "type": "elmo-sst",
                "text_field_embedder": {
                    "token_embedders": {"words": {"type": "embedding", "embedding_dim": 6}}
                },
                "feedforward": {**RELU, "hidden_dims": 5},
                "encoder": LSTM,
                "integrator": LSTM,
                "classifier": {**RELU, "num_layers": 2, "hidden_dims": [9, 8]},
                **settings,
            }
        ),
    )


@pytest.fixture(scope="module")
def instances():
    words = SstReader()._token_indexers["words"]
    reader = SstReader(token_indexers={"words": words, "elmo": CharacterIndexer()})
    return list(reader.read(FIXTURES / "corpora/sst/train.txt"))


@pytest.mark.parametrize("at", [None, "input", "output", "both"])
def test_probabilities_are_those_of_the_equations_word_by_word(vocab, instances, at):
    torch.manual_seed(0)
    model = build(vocab, **({} if at is None else {"placement": placement(at)})).eval()
    with torch.no_grad():
        # Far from 0, so that attention and pooling choose; not all of one sign.
        for parameter in model.parameters():
            parameter.mul_(2.0)
    # One of a single word, and two of different lengths.
    chosen = sorted(instances, key=lambda instance: len(instance["tokens"]))
    chosen = [chosen[0], chosen[len(chosen) // 2], chosen[-1]]
    assert [len(instance["tokens"]) for instance in chosen][0] <= 2
    tensors = make_batch(vocab, chosen, elmo=at is not None)
    with torch.no_grad():
        outputs = model(**tensors)
        placed = model.placement(tensors["tokens"])
    weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
    losses = []
    for row, instance in enumerate(chosen):
        ids = [vocab.get_token_index(token.text, "tokens") for token in instance["tokens"].tokens]
        at_input, at_output = (
            numpy.zeros((len(ids), 0)) if vectors is None else vectors[row, : len(ids)].numpy()
            for vectors in (placed.input_vectors, placed.output_vectors)
        )
        expected = slow_probabilities(weights, ids, at_input, at_output)
        found = outputs["probabilities"][row].numpy()
        numpy.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-7)
        losses.append(-numpy.log(expected[tensors["label"][row]]))
    assert outputs["loss"].item() == pytest.approx(sum(losses) / 3, rel=1e-5)


def slow_probabilities(weights, ids, at_input, at_output):
    """McCann et al. (2017), section 5, of one sentence without padding, a word at a time."""
    embedding = weights["text_field_embedder.token_embedder_words.weight"]
    words = [numpy.append(embedding[ids[t]], at_input[t]) for t in range(len(ids))]
    words = [relu(weights, "feedforward._linear_layers.0", word) for word in words]
    encoded = slow_bilstm(weights, "encoder", words)
    with_context = []
    for word in encoded:
        attention = slow_softmax([word @ other for other in encoded])
        context = sum(weight * other for weight, other in zip(attention, encoded))
        with_context.append(numpy.concatenate([word, word - context, word * context]))
    integrated = slow_bilstm(weights, "integrator", with_context)
    vectors = [numpy.append(integrated[t], at_output[t]) for t in range(len(ids))]
    attention = slow_softmax(
        [weights["pooling_attention.weight"][0] @ vector for vector in vectors]
    )
    pooled = [[max(column), sum(column) / len(column), min(column)] for column in zip(*vectors)]
    pooled = numpy.array(pooled).T.reshape(-1)
    own = sum(weight * vector for weight, vector in zip(attention, vectors))
    hidden = numpy.concatenate([pooled, own])
    for layer in range(2):
        hidden = relu(weights, f"classifier._linear_layers.{layer}", hidden)
    return slow_softmax(
        weights["output_projection.weight"] @ hidden + weights["output_projection.bias"]
    )


def relu(weights, name, vector):
    return numpy.maximum(weights[f"{name}.weight"] @ vector + weights[f"{name}.bias"], 0.0)


def slow_softmax(scores):
    powers = [numpy.exp(score - max(scores)) for score in scores]
    return numpy.array([power / sum(powers) for power in powers])


def slow_bilstm(weights, name, inputs):
    outputs = [[] for _ in inputs]
    for direction in ("", "_reverse"):
        own = [weights[f"{name}._module.{part}_l0{direction}"] for part in TORCH_LSTM]
        hidden = cell_state = numpy.zeros(own[1].shape[1])
        positions = range(len(inputs))
        for t in reversed(positions) if direction else positions:
            blocks = own[0] @ inputs[t] + own[1] @ hidden + own[2] + own[3]
            enter, forget, new, out = numpy.split(blocks, 4)
            cell_state = sigmoid(forget) * cell_state + sigmoid(enter) * numpy.tanh(new)
            hidden = sigmoid(out) * numpy.tanh(cell_state)
            outputs[t].append(hidden)
    return [numpy.concatenate(pair) for pair in outputs]


TORCH_LSTM = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def sigmoid(values):
    return 1.0 / (1.0 + numpy.exp(-values))


def test_padding_does_not_drown_scores_far_below_zero(vocab):
    model = build(vocab)
    with torch.no_grad():
        model.pooling_attention.weight.fill_(1.0)
    vectors = -100.0 * torch.rand(2, 5, 8, generator=torch.Generator().manual_seed(0)) - 100.0
    mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    vectors[1, 2:] = 0.0
    alone = model._pool(vectors[1:, :2], mask[1:, :2])
    torch.testing.assert_close(model._pool(vectors, mask)[1:], alone)
    # Scores so far apart leave one word, the one that is least negative.
    best = vectors[1, :2].sum(dim=-1).argmax()
    torch.testing.assert_close(alone[0, -8:], vectors[1, best])


@pytest.mark.parametrize(
    "at, feedforward_input, pooled", [("input", 38, 8), ("output", 6, 40), ("both", 38, 40)]
)
def test_widths_follow_the_placement(vocab, at, feedforward_input, pooled):
    model = build(vocab, placement=placement(at))
    assert model.feedforward.get_input_dim() == feedforward_input
    assert model.pooling_attention.in_features == pooled
    assert model.classifier.get_input_dim() == 4 * pooled
    assert model.integrator.get_input_dim() == 3 * model.encoder.get_output_dim()


@pytest.mark.parametrize("elmo", [{}, {"placement": placement("both")}])
def test_the_model_can_learn_a_corpus_by_heart(vocab, instances, elmo):
    torch.manual_seed(0)
    wide = {"type": "elmo-bilstm", "hidden_size": 16}
    model = build(
        vocab,
        feedforward={**RELU, "hidden_dims": 32},
        encoder=wide,
        integrator=wide,
        classifier={**RELU, "num_layers": 2, "hidden_dims": [64, 32]},
        dropout=0.0,
        pooled_dropout=0.0,
        **elmo,
    )
    batch = make_batch(vocab, instances[:40:2], elmo=bool(elmo))
    assert learn(model, [batch], rate=0.005, num_epochs=120) == {"accuracy": 1.0}


def test_accuracy_is_the_share_of_sentences_that_are_right(vocab, instances):
    model = build(vocab).eval()
    with torch.no_grad():
        model.output_projection.weight.zero_()
        model.output_projection.bias[vocab.get_token_index("neutral", "labels")] = 9.0
    # Two batches of different sizes: sentences count, not batches.
    for part in (instances[:30], instances[30:]):
        model(**make_batch(vocab, part, elmo=False))
    neutral = sum(instance["label"].label == "neutral" for instance in instances)
    assert model.get_metrics(reset=True)["accuracy"] == pytest.approx(neutral / len(instances))


def test_a_class_that_training_never_saw_is_named():
    reader = SstReader()
    known, unknown = (
        reader.text_to_instance([Token("so-so")], label) for label in ("positive", "neutral")
    )
    for instance in (known, unknown):
        reader.apply_token_indexers(instance)
    model = build(Vocabulary.from_instances([known]))
    with pytest.raises(KeyError, match="'neutral' not found in vocab namespace 'labels'"):
        model.forward_on_instances([unknown])
