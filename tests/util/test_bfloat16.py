"""Products in bfloat16 with and without a processor that has instructions for it."""

import logging

import pytest
import torch

from elmo_plugin.bilm import load_bilm
from elmo_plugin.util import bfloat16
from elmo_plugin.util.bfloat16 import autocast_bfloat16, bfloat16_if_fast, warn_of_slow_bilm

CPU = torch.device("cpu")


@pytest.fixture(params=[True, False], ids=["with instructions", "without"])
def has_bfloat16(request, monkeypatch):
    bfloat16._warn.cache_clear()
    monkeypatch.setattr(bfloat16, "CPU_HAS_BFLOAT16", request.param)
    return request.param


def product_in(context):
    with context:
        return (torch.ones(2, 3) @ torch.ones(3, 4)).dtype


@pytest.mark.parametrize("enabled", [True, False])
def test_products_are_in_bfloat16_where_the_processor_has_it(has_bfloat16, enabled, caplog):
    expected = torch.bfloat16 if has_bfloat16 and enabled else torch.float32
    for _ in range(3):
        assert product_in(autocast_bfloat16(CPU, enabled)) == expected
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    # Once, not for every batch.
    assert len(warnings) == (enabled and not has_bfloat16)
    assert all("no instructions for bfloat16" in message for message in warnings)


def test_float32_is_chosen_where_bfloat16_is_slow(has_bfloat16):
    assert bfloat16_if_fast(CPU) == (torch.bfloat16 if has_bfloat16 else torch.float32)
    assert bfloat16_if_fast(torch.device("cuda")) == torch.bfloat16


def test_a_slow_bilm_is_warned_of_when_it_computes(has_bfloat16, caplog):
    bilm = load_bilm(dtype="bfloat16")
    warn_of_slow_bilm(torch.device("cuda"))
    assert not caplog.text
    characters = torch.ones(1, 2, bilm.characters.max_characters_per_token, dtype=torch.long)
    for _ in range(2):
        bilm(characters)
    assert caplog.text.count("is faster in float32") == (not has_bfloat16)
