import copy

import torch

from elmo_plugin.bilm import Bilm, BilmOptions
from elmo_plugin.bilm.stored_options import encode_bytes, encode_stored_options


def test_options_without_the_two_settings_mean_what_they_meant_when_they_were_stored(make_options):
    """Archives of versions in which these settings had defaults."""
    source = make_options(activation="tanh", use_skip_connections=False)
    bilm = Bilm(BilmOptions.from_dict(copy.deepcopy(source)))
    state = bilm.state_dict()
    del source["char_cnn"]["activation"], source["lstm"]["use_skip_connections"]
    state["options_json"] = encode_stored_options(source, "")
    Bilm(bilm.options).load_state_dict(state)


def test_bytes_survive_half_precision_and_means():
    values = encode_bytes(bytes(range(256)))
    for dtype in (torch.float16, torch.bfloat16):
        assert torch.equal(values.to(dtype).float(), values)
