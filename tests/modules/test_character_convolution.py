"""`character_maxima` against a loop over words, windows and positions."""

import pytest
import torch

from elmo_plugin.modules import character_convolution
from elmo_plugin.modules.character_convolution import can_look_up, character_maxima
from tests.bilm.oracle import relative_error

PADDING, NUM_CHARACTERS, DIM, LONGEST = 5, 9, 3, 12
WIDTHS = [(1, 2), (3, 33), (4, 64), (7, 1)]

HAS_GPU = torch.cuda.is_available()


@pytest.fixture(autouse=True, params=["compiled", "triton"])
def device(request, monkeypatch):
    """The kernels of a CPU, and those of a GPU; without one, Triton's interpreter runs them."""
    if request.param == "compiled":
        if not can_look_up(torch.zeros(1, dtype=torch.long), torch.zeros(1)):
            pytest.skip("no C++ compiler")
        return "cpu"
    pytest.importorskip("triton", reason="comes with PyTorch for CUDA")
    monkeypatch.setattr(character_convolution, "_is_on_gpu", lambda _: True)
    return "cuda" if HAS_GPU else "cpu"


def make(dtype=torch.float32, device="cpu"):
    generator = torch.Generator().manual_seed(1)
    embedding = torch.randn(NUM_CHARACTERS, DIM, generator=generator, dtype=torch.float64)
    convolutions = [torch.nn.Linear(width * DIM, number).double() for width, number in WIDTHS]
    for convolution in convolutions:
        for parameter in convolution.parameters():
            torch.nn.init.normal_(parameter, generator=generator)
        convolution.to(device, dtype)
    return embedding.to(device, dtype).requires_grad_(), convolutions


def make_words(lengths, device="cpu"):
    generator = torch.Generator().manual_seed(2)
    ids = torch.full((len(lengths), LONGEST), PADDING)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(PADDING, (length,), generator=generator)
    return ids.to(device), torch.tensor(lengths, dtype=torch.long, device=device)


def loop(ids, embedding, convolutions):
    """All windows, those of padding too."""
    rows = []
    for word in ids:
        embedded = embedding[word]
        maxima = []
        for convolution in convolutions:
            width = convolution.in_features // DIM
            windows = [
                embedded[start : start + width].flatten() for start in range(LONGEST - width + 1)
            ]
            maxima.append(convolution(torch.stack(windows)).amax(dim=0))
        rows.append(torch.cat(maxima))
    return torch.stack(rows)


@pytest.mark.parametrize("lengths", [[3], [0, 1, 2, LONGEST], 6 * [5, 11, 8]], ids=str)
def test_values_and_gradients_are_those_of_a_loop(device, lengths):
    embedding, convolutions = make(device=device)
    found = character_maxima(*make_words(lengths, device), embedding, convolutions)
    exact, exact_convolutions = make(torch.float64)
    expected = loop(make_words(lengths)[0], exact, exact_convolutions)
    assert relative_error(found.cpu(), expected) < 1e-6
    direction = torch.randn(expected.shape, generator=torch.Generator().manual_seed(3))
    # As behind a ReLU.
    direction[direction < 0] = 0.0

    def gradients(values, embedding, convolutions):
        parameters = [part for layer in convolutions for part in layer.parameters()]
        (values.cpu() * direction).sum().backward()
        return [embedding.grad[1:].cpu(), *(parameter.grad.cpu() for parameter in parameters)]

    pairs = zip(
        gradients(found, embedding, convolutions), gradients(expected, exact, exact_convolutions)
    )
    assert all(relative_error(*pair) < 1e-5 for pair in pairs)
    assert not embedding.grad[0].any()


@pytest.mark.parametrize("device", ["compiled", *["triton"] * HAS_GPU], indirect=True)
def test_results_do_not_depend_on_threads(device, set_num_threads):
    ids, lengths = make_words(40 * [7, 2, 9], device)
    results = []
    for threads in (1, 2):
        set_num_threads(threads)
        embedding, convolutions = make(device=device)
        character_maxima(ids, lengths, embedding, convolutions).square().sum().backward()
        results.append([embedding.grad, *(layer.weight.grad for layer in convolutions)])
    assert all(torch.equal(*pair) for pair in zip(*results))


def test_what_is_not_a_number_stays_visible(device):
    embedding, convolutions = make(device=device)
    with torch.no_grad():
        embedding[2] = float("nan")
    ids = torch.full((1, LONGEST), 1, device=device)
    ids[0, 3] = 2
    lengths = torch.tensor([LONGEST], device=device)
    with torch.no_grad():
        maxima = character_maxima(ids, lengths, embedding, convolutions)
    assert maxima.isnan().all()


@pytest.mark.parametrize("bad", [-1, NUM_CHARACTERS])
def test_ids_without_an_embedding_are_refused(device, bad):
    embedding, convolutions = make(device=device)
    words = torch.full((1, LONGEST), bad, device=device), torch.tensor([1], device=device)
    if device == "cuda":
        assert character_maxima(*words, embedding, convolutions).isnan().all()
        return
    with pytest.raises(IndexError, match="from 0 to 8"):
        character_maxima(*words, embedding, convolutions)


def test_zero_gradients_stay_zero_and_infinite_ones_visible(device):
    embedding, convolutions = make(device=device)
    maxima = character_maxima(*make_words([3, 5], device), embedding, convolutions)
    (maxima * 0.0).sum().backward(retain_graph=True)
    assert not embedding.grad.any()
    (maxima * torch.inf).sum().backward()
    assert not convolutions[0].weight.grad.isfinite().all()


def test_no_words_have_no_maxima(device):
    embedding, convolutions = make(device=device)
    maxima = character_maxima(*make_words([], device), embedding, convolutions)
    assert maxima.shape == (0, 100)
