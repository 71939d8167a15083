import pytest
import torch

from tests.tasks import slow
from tests.tasks.small import build, make_batch, placement


@pytest.mark.parametrize("at", [None, "input", "output", "both"])
def test_probabilities_are_those_of_the_equations_word_by_word(vocab, instances, at):
    torch.manual_seed(0)
    model = build("sst", vocab, placement=placement(at)).eval()
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
        text = model.placement(tensors["tokens"])
        embedded = text.at_input(model.text_field_embedder(text.words)).double()
        at_output = text.at_output(embedded[..., :0]).double()
    weights = {name: value.double() for name, value in model.state_dict().items()}
    losses = []
    for row, instance in enumerate(chosen):
        length = len(instance["tokens"])
        expected = slow_probabilities(weights, embedded[row, :length], at_output[row, :length])
        found = outputs["probabilities"][row].double()
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-7)
        losses.append(-expected[tensors["label"][row]].log().item())
    assert outputs["loss"].item() == pytest.approx(sum(losses) / 3, rel=1e-5)


def slow_probabilities(weights, words, at_output):
    """McCann et al. (2017), section 5, of one sentence without padding, a word at a time."""
    words = [relu(weights, "feedforward._linear_layers.0", word) for word in words]
    encoded = slow.bilstm(slow.below(weights, "encoder"), words)
    with_context = []
    for word in encoded:
        context = mean([word @ other for other in encoded], encoded)
        with_context.append(torch.cat([word, word - context, word * context]))
    integrated = slow.bilstm(slow.below(weights, "integrator"), with_context)
    vectors = [torch.cat(pair) for pair in zip(integrated, at_output)]
    own = mean([weights["pooling_attention.weight"][0] @ vector for vector in vectors], vectors)
    columns = torch.stack(vectors)
    pooled = [columns.amax(0), sum(vectors) / len(vectors), columns.amin(0), own]
    hidden = torch.cat(pooled)
    for layer in range(2):
        hidden = relu(weights, f"classifier._linear_layers.{layer}", hidden)
    logits = weights["output_projection.weight"] @ hidden + weights["output_projection.bias"]
    return logits.exp() / logits.exp().sum()


def relu(weights, name, vector):
    return (weights[f"{name}.weight"] @ vector + weights[f"{name}.bias"]).clamp(min=0.0)


def mean(scores, vectors):
    """The mean of vectors, weighted by a softmax over the scores."""
    powers = [score.exp() for score in scores]
    return sum(power * vector for power, vector in zip(powers, vectors)) / sum(powers)


def test_padding_does_not_drown_scores_far_below_zero(vocab):
    model = build("sst", vocab)
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
