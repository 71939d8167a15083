import copy

import torch

from elmo_plugin.bilm import Bilm, BilmOptions, fingerprint, load_bilm, save_weights, weights_type
from tests.bilm.trained import WORDS


def test_equal_bilms_have_one_fingerprint_wherever_they_were_read(
    shared_bilm, options_file, tmp_path
):
    save_weights(shared_bilm, tmp_path / "copy.safetensors")
    again = load_bilm(options_file, tmp_path / "copy.safetensors")
    unnamed = Bilm(shared_bilm.options)
    unnamed.load_state_dict(shared_bilm.state_dict())
    assert fingerprint(shared_bilm) == fingerprint(again) == fingerprint(unnamed)


def test_any_changed_weight_changes_the_fingerprint(bilm):
    seen = {fingerprint(bilm)}
    for parameter in bilm.parameters():
        changed = parameter.data.flatten()
        changed[-1] += 1.0
        seen.add(fingerprint(bilm))
    assert len(seen) == 1 + len(list(bilm.parameters()))


def test_the_type_of_the_weights_and_the_options_change_the_fingerprint(make_bilm):
    bilm = make_bilm()
    half = copy.deepcopy(bilm).to(torch.bfloat16)
    clipped = make_bilm(proj_clip=2.0)
    assert len({fingerprint(each) for each in (bilm, half, clipped)}) == 3


def test_the_words_of_token_embeddings_change_the_fingerprint(make_options):
    source = {name: value for name, value in make_options().items() if name != "char_cnn"}
    first = Bilm(BilmOptions.from_dict(source).with_words(WORDS))
    second = Bilm(BilmOptions.from_dict(source).with_words([*WORDS[:-1], "another"]))
    for name, parameter in second.named_parameters():
        parameter.data = first.get_parameter(name).data
    assert fingerprint(first) != fingerprint(second)


def test_the_type_of_the_weights_is_that_of_load_bilm(bilm):
    assert weights_type(bilm) == "float32"
    assert weights_type(copy.deepcopy(bilm).to(torch.bfloat16)) == "bfloat16"
