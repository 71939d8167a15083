"""Layers of a frozen biLM equal those of its forward pass, with and without a cache."""

import copy
import pickle
import shutil

import pytest
import torch

from elmo_plugin import Elmo
from elmo_plugin.bilm import fingerprint
from elmo_plugin.elmo import token_batches
from elmo_plugin.elmo.cache import layer_cache
from elmo_plugin.elmo.cache.frozen_layers import FrozenLayers
from elmo_plugin.elmo.cache.layer_cache import LayerCache
from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.oracle import assert_layers_equal, relative_error


@pytest.fixture
def folder(tmp_path):
    """A cache's folder."""
    return tmp_path / "cache"


def count_read(bilm):
    """A list to which each forward pass of the biLM appends its number of sentences."""
    read = []
    bilm.register_forward_hook(lambda _, ids, __: read.append(len(ids[0])))
    return read


def rounded(layers):
    return layers.half().float()


@pytest.mark.parametrize("max_tokens", [1, 20, 8192])
@pytest.mark.parametrize("cached", [False, True])
def test_layers_are_the_bilms_own(bilm, sentences, golden, folder, monkeypatch, cached, max_tokens):
    monkeypatch.setattr(token_batches, "MAX_TOKENS", max_tokens)
    frozen = FrozenLayers(bilm, folder if cached else None)
    for words in (sentences, sentences[::-1], sentences * 2, sentences[:1], [[], []]):
        ids = bilm.characters.batch_ids(words)
        expected, found = bilm(ids), frozen(ids)
        assert torch.equal(found.mask, expected.mask)
        assert found.layers.dtype == expected.layers.dtype == torch.float32
        torch.testing.assert_close(
            found.layers,
            expected.layers,
            rtol=1e-3 if cached else 1e-4,
            atol=2e-4 if cached else 1e-5,
        )
    for row, words in enumerate(sentences):
        layers = frozen(bilm.characters.batch_ids([words])).layers[:, 0]
        assert_layers_equal(layers, golden[row], 1e-3 if cached else 1e-5)


@pytest.mark.parametrize("cached", [False, True])
def test_a_repeated_sentence_is_computed_once(bilm, folder, cached):
    read = count_read(bilm)
    frozen = FrozenLayers(bilm, folder if cached else None)
    ids = bilm.characters.batch_ids([["a", "b"], ["c"], ["a", "b"], ["a", "b", "c"], ["c"]])
    layers = frozen(ids).layers
    assert sum(read) == 3
    if cached:
        assert torch.equal(layers, rounded(layers))
    assert torch.equal(layers[:, 0], layers[:, 2]) and torch.equal(layers[:, 1], layers[:, 4])
    frozen(ids)
    assert sum(read) == (3 if cached else 6)


def test_a_sentence_is_found_with_any_padding(bilm, folder):
    read, frozen = count_read(bilm), FrozenLayers(bilm, folder)
    for batch in ([["a"]], [["a"], ["b"] * 4], [["a"], ["b"] * 4, []]):
        frozen(bilm.characters.batch_ids(batch))
    assert read == [1, 1, 1]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_another_process_finds_the_layers_of_the_first(folder, sentences, dtype):
    first, second = (Elmo(dropout=0.0, dtype=dtype, cache=str(folder)) for _ in range(2))
    ids = first.bilm.characters.batch_ids(sentences)
    expected = first(ids)
    (opened,) = LayerCache.opened()
    assert torch.equal(first(ids), expected) and LayerCache.opened() == [opened]
    # As another process would.
    LayerCache.close_all()
    read = count_read(second.bilm)
    assert torch.equal(second(ids), expected)
    assert torch.equal(second(ids.flip(0)), expected.flip(0))
    assert read == []


@pytest.mark.parametrize(
    "change, tolerance",
    [
        (lambda bilm: bilm.character_encoder.projection.weight.data.mul_(1.5), 1e-3),
        # In bfloat16, layers depend on the batch in which they are computed.
        (lambda bilm: bilm.to(torch.bfloat16), 1e-2),
        (lambda bilm: setattr(bilm, "warm_up", True), 1e-3),
    ],
    ids=["weights", "bfloat16", "warm-up"],
)
def test_another_bilm_does_not_read_the_entries(bilm, folder, sentences, change, tolerance):
    ids = bilm.characters.batch_ids(sentences)
    before = FrozenLayers(bilm, folder)(ids).layers
    other = copy.deepcopy(bilm)
    change(other)
    found = FrozenLayers(other, folder)(ids).layers
    assert relative_error(found, other(ids).layers.float()) < tolerance
    assert relative_error(found, before) > 1e-3


def change_bias(bilm):
    with torch.no_grad():
        bilm.lstm.forward_layers[0].bias.add_(1.0)


def change_data(bilm):
    bilm.character_encoder.projection.weight.data.mul_(1.5)


def take_a_step(bilm):
    bilm.requires_grad_(True)
    # A fused optimizer leaves no trace in the version of a tensor.
    optimizer = torch.optim.Adam(bilm.parameters(), lr=0.1, fused=True)
    bilm(bilm.characters.batch_ids([["a"]])).layers.sum().backward()
    optimizer.step()
    bilm.requires_grad_(False)


def warm_up(bilm):
    bilm.warm_up = True


def evaluate(bilm):
    bilm.eval()


@pytest.mark.parametrize(
    "changes",
    [
        [change_bias],
        [change_data, evaluate],
        [take_a_step],
        [warm_up],
    ],
    ids=lambda changes: "-".join(change.__name__ for change in changes),
)
def test_weights_that_change_later_change_the_entries(bilm, folder, sentences, changes):
    bilm.requires_grad_(False)
    frozen = FrozenLayers(bilm, folder)
    ids = bilm.characters.batch_ids(sentences)
    before = frozen(ids).layers
    state = {name: value.clone() for name, value in bilm.state_dict().items()}
    for change in changes:
        change(bilm)
    after = frozen(ids).layers
    expected = copy.deepcopy(bilm)(ids).layers
    torch.testing.assert_close(after, expected, rtol=1e-3, atol=1e-3)
    assert relative_error(after, before) > 0.01
    bilm.load_state_dict(state)
    bilm.warm_up = False
    assert torch.equal(frozen(ids).layers, before)


def test_the_fingerprint_is_computed_when_the_mode_changes_and_not_for_each_batch(
    folder, sentences, monkeypatch
):
    computed = []
    counted = lambda bilm: computed.append(1) or fingerprint(bilm)  # noqa: E731
    monkeypatch.setattr(layer_cache, "fingerprint", counted)
    elmo = Elmo(dropout=0.0, cache=str(folder))
    ids = elmo.bilm.characters.batch_ids(sentences)
    for epoch in range(3):
        elmo.train()
        for _ in range(3):
            elmo(ids)
        elmo.eval()
        for _ in range(3):
            elmo(ids)
        assert len(computed) == 2 * (epoch + 1)
    assert len(LayerCache.opened()) == 1


def test_autocast_does_not_change_the_entries(bilm, folder, sentences):
    ids = bilm.characters.batch_ids(sentences)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = FrozenLayers(bilm, folder)(ids).layers
    torch.testing.assert_close(found, rounded(bilm(ids).layers), rtol=2**-10, atol=1e-6)


def test_layers_too_large_for_half_precision_are_refused(bilm, folder, sentences):
    bilm.requires_grad_(False)
    bilm.character_encoder.projection.weight.mul_(1e6)
    ids = bilm.characters.batch_ids(sentences)
    frozen = FrozenLayers(bilm, folder)
    with pytest.raises(ConfigurationError, match="half precision cannot represent"):
        frozen(ids)
    (cache,) = LayerCache.opened()
    assert not cache._pending
    assert relative_error(FrozenLayers(bilm)(ids).layers, bilm(ids).layers) < 1e-4


def test_a_copy_works_with_and_without_its_cache(folder, sentences, caplog):
    elmo = Elmo(dropout=0.0, cache=str(folder))
    ids = elmo.bilm.characters.batch_ids(sentences)
    expected, pickled = elmo(ids), pickle.dumps(elmo)
    for copied in (copy.deepcopy(elmo), pickle.loads(pickled)):
        assert torch.equal(copied(ids), expected)
    assert len(LayerCache.opened()) == 1
    LayerCache.close_all()
    shutil.rmtree(folder)
    folder.write_text("not a folder")
    torch.testing.assert_close(pickle.loads(pickled)(ids), expected, rtol=1e-3, atol=5e-4)
    assert "cannot be opened" in caplog.records[-1].getMessage()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("cached", [False, True])
def test_the_type_does_not_depend_on_the_batch(bilm, folder, dtype, cached):
    bilm.to(getattr(torch, dtype))
    frozen = FrozenLayers(bilm, folder if cached else None)
    for words in ([["a"], ["b"]], [["a"], ["a"]], []):
        ids = bilm.characters.batch_ids(words) if words else torch.zeros(0, 5, 50).long()
        assert frozen(ids).layers.dtype == torch.float32


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("cached", [False, True])
def test_a_gpu_gives_what_the_processor_gives(folder, sentences, cached):
    on_cpu, on_gpu = (
        Elmo(dropout=0.0, cache=str(folder / device) if cached else False).to(device)
        for device in ("cpu", "cuda")
    )
    for words in (sentences, sentences * 2, sentences[:1] * 3, [[], []]):
        ids = on_cpu.bilm.characters.batch_ids(words)
        found = on_gpu(ids.cuda())
        assert found.device.type == "cuda"
        torch.testing.assert_close(
            found.cpu(), on_cpu(ids), rtol=1e-3, atol=2e-4 if cached else 1e-5
        )


@pytest.mark.parametrize("cached", [False, True])
def test_padding_may_be_any_id_that_is_not_of_a_character(bilm, folder, cached):
    ids = bilm.characters.batch_ids([["The", "cat"], ["A"], ["The", "cat", "sat"], ["A"]])
    expected = FrozenLayers(bilm)(ids).layers
    ids[3, 1:] = -1
    frozen = FrozenLayers(bilm, folder if cached else None)
    for found in (frozen(ids).layers, frozen(ids).layers, frozen(ids.int()).layers):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=2e-4 if cached else 1e-5)
