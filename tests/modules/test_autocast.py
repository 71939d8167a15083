"""Products in bfloat16 with and without a processor that has instructions for it."""

import logging

import pytest
import torch

from elmo_plugin.modules import autocast
from elmo_plugin.modules.autocast import autocast_bfloat16, warn_if_bfloat16_is_slow
from elmo_plugin.modules.linear import products

CPU = torch.device("cpu")


@pytest.fixture(params=[True, False], ids=["with instructions", "without"])
def has_bfloat16(request, monkeypatch):
    autocast._warn.cache_clear()
    monkeypatch.setattr(products, "HAS_BFLOAT16", request.param)
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


def test_slow_weights_are_warned_of(has_bfloat16, caplog):
    warn_if_bfloat16_is_slow(torch.device("cuda"))
    assert not caplog.text
    warn_if_bfloat16_is_slow(CPU)
    assert ("float32 is several times as fast" in caplog.text) == (not has_bfloat16)
