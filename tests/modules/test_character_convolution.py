"""`character_maxima` against a loop over words, windows and positions."""

import pytest
import torch

from elmo_plugin.modules.character_convolution import can_look_up, character_maxima
from tests.bilm.oracle import relative_error

PADDING, NUM_CHARACTERS, DIM, LONGEST = 5, 9, 3, 12
WIDTHS = [(1, 2), (3, 33), (4, 64), (7, 1)]

pytestmark = pytest.mark.skipif(
    not can_look_up(torch.zeros(1, dtype=torch.long), torch.zeros(1)), reason="no C++ compiler"
)


def make(dtype=torch.float32):
    generator = torch.Generator().manual_seed(1)
    embedding = torch.randn(NUM_CHARACTERS, DIM, generator=generator, dtype=torch.float64)
    convolutions = [torch.nn.Linear(width * DIM, number).double() for width, number in WIDTHS]
    for convolution in convolutions:
        for parameter in convolution.parameters():
            torch.nn.init.normal_(parameter, generator=generator)
        convolution.to(dtype)
    return embedding.to(dtype).requires_grad_(), convolutions


def make_words(lengths):
    generator = torch.Generator().manual_seed(2)
    ids = torch.full((len(lengths), LONGEST), PADDING)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(PADDING, (length,), generator=generator)
    return ids, torch.tensor(lengths, dtype=torch.long)


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


@pytest.mark.parametrize("lengths", [[3], [0, 1, 2, LONGEST], 30 * [5, 11, 8]], ids=str)
def test_values_and_gradients_are_those_of_a_loop(lengths):
    ids, lengths = make_words(lengths)
    embedding, convolutions = make()
    found = character_maxima(ids, lengths, embedding, convolutions)
    exact, exact_convolutions = make(torch.float64)
    expected = loop(ids, exact, exact_convolutions)
    assert relative_error(found, expected) < 1e-6
    direction = torch.randn(expected.shape, generator=torch.Generator().manual_seed(3))
    # As behind a ReLU.
    direction[direction < 0] = 0.0

    def gradients(values, embedding, convolutions):
        parameters = [part for layer in convolutions for part in layer.parameters()]
        (values * direction).sum().backward()
        return [embedding.grad[1:], *(parameter.grad for parameter in parameters)]

    pairs = zip(
        gradients(found, embedding, convolutions), gradients(expected, exact, exact_convolutions)
    )
    assert all(relative_error(*pair) < 1e-5 for pair in pairs)
    assert not embedding.grad[0].any()


def test_results_do_not_depend_on_threads(set_num_threads):
    ids, lengths = make_words(40 * [7, 2, 9])
    results = []
    for threads in (1, 2):
        set_num_threads(threads)
        embedding, convolutions = make()
        character_maxima(ids, lengths, embedding, convolutions).square().sum().backward()
        results.append([embedding.grad, *(layer.weight.grad for layer in convolutions)])
    assert all(torch.equal(*pair) for pair in zip(*results))


def test_what_is_not_a_number_stays_visible():
    embedding, convolutions = make()
    with torch.no_grad():
        embedding[2] = float("nan")
    ids = torch.full((1, LONGEST), 1)
    ids[0, 3] = 2
    with torch.no_grad():
        maxima = character_maxima(ids, torch.tensor([LONGEST]), embedding, convolutions)
    assert maxima.isnan().all()


@pytest.mark.parametrize("bad", [-1, NUM_CHARACTERS])
def test_ids_without_an_embedding_are_refused(bad):
    embedding, convolutions = make()
    with pytest.raises(IndexError, match="from 0 to 8"):
        character_maxima(torch.full((1, LONGEST), bad), torch.tensor([1]), embedding, convolutions)


def test_no_words_have_no_maxima():
    embedding, convolutions = make()
    maxima = character_maxima(*make_words([]), embedding, convolutions)
    assert maxima.shape == (0, 100)
