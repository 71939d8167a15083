"""Files of weights: which are about to be loaded, and those that are damaged."""

import pathlib

import pytest
import torch

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.weights import read_state, stored_weights


def test_a_file_that_is_missing_or_a_folder_is_not_called_damaged(tmp_path):
    with pytest.raises(ConfigurationError, match="^It cannot be read: No such file or directory.$"):
        read_state(tmp_path / "weights.th", "It")
    with pytest.raises(ConfigurationError, match="^It cannot be read: Is a directory.$"):
        read_state(tmp_path, "It")


def test_too_little_memory_is_no_damage(tmp_path, monkeypatch):
    def load(*args, **settings):
        raise MemoryError

    (tmp_path / "weights.th").touch()
    monkeypatch.setattr(torch, "load", load)
    with pytest.raises(MemoryError):
        read_state(tmp_path / "weights.th", "It")


@pytest.mark.parametrize("is_zip", [True, False])
def test_what_is_no_tensor_is_named_without_the_advice_of_torch_to_execute_it(tmp_path, is_zip):
    file = tmp_path / "weights.th"
    state = {"a": pathlib.PurePosixPath("x")}
    torch.save(state, file, _use_new_zipfile_serialization=is_zip)
    with pytest.raises(ConfigurationError) as error:
        read_state(file, "It")
    assert str(error.value) == (
        "It cannot be read; it is damaged, cut short, or holds more than tensors (such as a "
        "pickled class). Copy it again, or save a state dict of tensors alone."
    )


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_damage_to_a_file_of_old_versions_of_torch_is_named_or_only_changes_values(tmp_path):
    """They are no zip files and have no checksums."""
    file = tmp_path / "weights.th"
    torch.save({"a.weight": torch.ones(2)}, file, _use_new_zipfile_serialization=False)
    content = file.read_bytes()
    assert torch.equal(read_state(file, "It")["a.weight"], torch.ones(2))
    num_refused = 0
    for position in range(0, len(content), 3):
        for damaged in (bytes([content[position] ^ 0x40]), b""):
            file.write_bytes(content[:position] + damaged + content[position + 1 :])
            try:
                read_state(file, "It")
            except ConfigurationError as error:
                assert str(error).startswith("It cannot be read; it is damaged, cut short, or")
                assert "\n" not in str(error)
                num_refused += 1
    assert num_refused > len(content) // 3


@pytest.mark.parametrize(
    "file, is_there",
    [
        ("~/weights.hdf5", True),
        ("file://{}/weights.hdf5", True),
        ("{}/weights.hdf5", True),
        ("https://host/weights.hdf5", True),
        ("~/none.hdf5", False),
        ("file://{}/none.hdf5", False),
        ("{}/none.hdf5", False),
        ("", False),
    ],
)
def test_weights_of_a_training_run_are_used_only_if_a_file_is_gone(
    tmp_path, monkeypatch, file, is_there
):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("weights.hdf5", "best.th"):
        (tmp_path / name).touch()
    files = ("~/weights.hdf5", file.format(tmp_path))
    expected = None if is_there else tmp_path / "best.th"
    assert stored_weights(tmp_path, *files) == expected
    assert stored_weights(None, *files) is None
    (tmp_path / "weights.th").touch()
    assert stored_weights(tmp_path, *files) == tmp_path / "weights.th"
