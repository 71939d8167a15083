"""Options files: read field by field, and refused with the name of what is wrong."""

import copy
import json

import pytest
import torch

from elmo_plugin.bilm import Bilm, BilmOptions
from elmo_plugin.bilm.stored_options import encode_bytes, encode_stored_options
from elmo_plugin.util.errors import ConfigurationError


def test_the_fixtures_options_are_read_field_by_field(options_file):
    options = BilmOptions.from_file(options_file)
    cnn, lstm = options.char_cnn, options.lstm
    assert cnn.filters == ((1, 8), (2, 8), (3, 16), (4, 16))
    assert (cnn.embedding_dim, cnn.n_characters, cnn.max_characters_per_token) == (8, 262, 50)
    assert (cnn.activation, cnn.n_highway, cnn.character_unit) == ("relu", 2, "byte")
    assert cnn.num_filters == 48
    assert (lstm.dim, lstm.projection_dim, lstm.n_layers) == (48, 16, 2)
    assert (lstm.cell_clip, lstm.proj_clip, lstm.use_skip_connections) == (3, 3, True)
    assert (options.num_layers, options.output_dim) == (3, 32)
    assert options.source == json.loads(options_file.read_text())


def test_what_bilm_tf_leaves_out_has_bilm_tfs_meaning(make_options):
    source = make_options()
    source["char_cnn"]["n_highway"] = None
    source["lstm"]["cell_clip"] = None
    del source["lstm"]["proj_clip"]
    del source["char_cnn"]["filters"][1:]
    del source["lstm"]["n_layers"]
    options = BilmOptions.from_dict(source)
    assert options.char_cnn.n_highway == 0
    assert (options.lstm.cell_clip, options.lstm.proj_clip) == (None, None)
    assert options.lstm.n_layers == 1


def test_training_settings_beside_are_kept(make_options):
    source = {**make_options(), "n_train_tokens": 768648884, "unroll_steps": 20}
    assert BilmOptions.from_dict(source).source == source


@pytest.mark.parametrize(
    "changes, expected",
    [
        (dict(n_characters=261), ["262 (bilm-tf trains with 261", "`char_cnn.n_characters`"]),
        (dict(character_unit="letter"), ["byte for `char_cnn.character_unit`, found 'letter'"]),
        (dict(max_characters_per_token=2, filters=[[1, 2]]), ["of at least 3", "found 2"]),
        (dict(max_characters_per_token=0), ["at least 3", "`char_cnn.max_characters_per_token`"]),
        (dict(activation="gelu"), ["relu or tanh for `char_cnn.activation`, found 'gelu'"]),
        (dict(filters=[[51, 4]]), ["widths up to `max_characters_per_token` (50)", "(51, 4)"]),
        (dict(filters=[]), ["`char_cnn.filters`, found []"]),
        (dict(filters=[1, 32]), ["[width, number]", "found [1, 32]"]),
        (dict(n_highway=-1), ["at least 0", "`char_cnn.n_highway`, found -1"]),
        (dict(embedding=0), ["at least 1", "`char_cnn.embedding.dim`, found 0"]),
        (dict(n_layers="two"), ["`lstm.n_layers`, found 'two'"]),
        (dict(dim=True), ["`lstm.dim`, found True"]),
        (dict(cell_clip=-3), ["not below 0", "`lstm.cell_clip`, found -3"]),
        (dict(proj_clip="3"), ["`lstm.proj_clip`, found '3'"]),
        (dict(projection="yes"), ["true or false for `char_cnn.projection`, found 'yes'"]),
        (dict(use_skip_connections="false"), ["true or false", "skip_connections`, found 'false'"]),
        (dict(filters=[[1.9, 4]]), ["whole numbers above 0", "found [[1.9, 4]]"]),
        (dict(filters=[[True, 4]]), ["whole numbers above 0", "found [[True, 4]]"]),
        (dict(cell_clip=float("inf")), ["not below 0", "`lstm.cell_clip`, found inf"]),
        (dict(proj_clip=float("nan")), ["not below 0", "`lstm.proj_clip`, found nan"]),
        (dict(n_layers=10**9), ["at most 1,000 for `lstm.n_layers`, found 1000000000"]),
        (dict(n_highway=10**9), ["at most 1,000 for `char_cnn.n_highway`, found 1000000000"]),
        (
            dict(max_characters_per_token=10**12),
            ["at most 10,000 for `char_cnn.max_characters_per_token`, found 1000000000000"],
        ),
        (dict(dim=10**12), ["at most 1,000,000 for `lstm.dim`, found 1000000000000"]),
        (dict(filters=[[1, 10**9]]), ["whole numbers above 0", "found [[1, 1000000000]]"]),
        (dict(bidirectional=0), ["true or false for `bidirectional`, found 0"]),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_an_impossible_setting_is_named_with_its_file(tmp_path, make_options, changes, expected):
    path = tmp_path / "options.json"
    path.write_text(json.dumps(make_options(**changes)))
    with pytest.raises(ConfigurationError) as error:
        BilmOptions.from_file(path)
    for part in [str(path), *expected]:
        assert part in str(error.value)


@pytest.mark.parametrize(
    "name",
    [
        *("char_cnn.filters", "char_cnn.embedding.dim", "char_cnn.activation"),
        *("lstm", "lstm.dim", "lstm.use_skip_connections"),
    ],
)
def test_a_missing_setting_is_named(make_options, name):
    source = make_options()
    *parents, last = name.split(".")
    part = source
    for parent in parents:
        part = part[parent]
    del part[last]
    with pytest.raises(ConfigurationError, match=f"{name}.*is missing; .* as in the file with"):
        BilmOptions.from_dict(source)


def test_a_missing_file_is_named_with_the_setting(tmp_path):
    with pytest.raises(ConfigurationError, match=r"none.json does not exist.*ELMO_OPTIONS"):
        BilmOptions.from_file(tmp_path / "none.json")


@pytest.mark.parametrize(
    "content, message",
    [
        *((content, "is not JSON") for content in (b"", b"{'n': 1}", b"\x89HDF\r\n\x1a\n")),
        *((content, ".*`lstm.(dim|proj_clip)` is missing") for content in (b"[]", b"3", b"{}")),
    ],
)
def test_a_file_that_holds_no_options_is_refused(tmp_path, content, message):
    (tmp_path / "options.json").write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"options.json:? ?{message}"):
        BilmOptions.from_file(tmp_path / "options.json")


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
