import pytest
import torch
from allennlp.common import Params
from allennlp.data.tokenizers import Token

from elmo_plugin.tasks.snli.model import _comparisons
from tests.tasks.small import FIXTURES, build, make_batch, placement
from tests.tasks.snli.oracle import restated


def pair(reader, premise, hypothesis, label="neutral"):
    words = ([Token(word) for word in text.split()] for text in (premise, hypothesis))
    instance = reader.text_to_instance(*words, label)
    reader.apply_token_indexers(instance)
    return instance


@pytest.mark.parametrize("at", [None, "input", "output", "both"])
def test_the_answer_is_that_of_the_equations(vocab, instances, at):
    torch.manual_seed(0)
    model = build("snli", vocab, placement=placement(at, layer_norm=True)).double().eval()
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
                words = model.text_field_embedder(text.words)
                texts.append(list(text.at_input(words)[0]))
                at_output.append(list(text.at_output(words[..., :0])[0]))
            torch.testing.assert_close(
                answers[number], restated(model, texts, at_output), rtol=1e-9, atol=1e-12
            )


def test_scores_far_below_zero_still_outweigh_padding(vocab):
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
    model = build("snli", vocab, placement=placement("both", layer_norm=True))
    outputs = model(**make_batch(vocab, [pair(reader, *text) for text in texts]))
    outputs["loss"].backward()
    assert outputs["probabilities"].isfinite().all()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert gradients and all(gradient.isfinite().all() for gradient in gradients)


def test_the_penalties_are_what_the_experiment_says(vocab):
    params = Params.from_file(FIXTURES.parent / "experiments/snli_elmo.jsonnet")
    regularizer = params["model"]["regularizer"].as_dict(quiet=True)
    model = build(
        "snli", vocab, placement=placement("both", layer_norm=True), regularizer=regularizer
    )
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
