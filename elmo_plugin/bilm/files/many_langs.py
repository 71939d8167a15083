"""
Folders of [ELMoForManyLangs](https://github.com/HIT-SCIR/ELMoForManyLangs), the biLMs of 44
languages by [Che et al. (2018)](https://aclanthology.org/K18-2005).
"""

import json
from contextlib import contextmanager
from pathlib import Path, PureWindowsPath
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import torch

from elmo_plugin.bilm.files.arrays import Shape
from elmo_plugin.bilm.files.layout import meta_parameters
from elmo_plugin.bilm.options import (
    CHARACTER_SPECIALS,
    WORD_SPECIALS,
    BilmOptions,
    CharacterTableOptions,
    LstmOptions,
    Values,
    read_part,
    read_setting,
    whole_number,
)
from elmo_plugin.util.errors import ConfigurationError, excerpt, expect
from elmo_plugin.util.text_files import numbered_lines
from elmo_plugin.util.weights import read_state

_CONFIG, _TOKEN_LAYER, _LSTM = "config.json", "token_embedder.pkl", "encoder.pkl"
_CHARACTERS, _WORDS = "char.dic", "word.dic"
# Most folders name one of these two, which are the same, and do not contain it.
_KNOWN_CONFIGS = ("cnn_50_100_512_4096_sample.json", "cnn_0_100_512_4096_sample.json")
_KNOWN_CONFIG: Dict[str, Any] = {
    "encoder": {
        **{"name": "elmo", "projection_dim": 512, "dim": 4096, "n_layers": 2},
        **{"cell_clip": 3, "proj_clip": 3},
    },
    "token_embedder": {
        **{"name": "cnn", "activation": "relu", "n_highway": 2, "word_dim": 100, "char_dim": 50},
        "filters": [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]],
        "max_characters_per_token": 50,
    },
}
_PATH = Values("the path of a file", lambda value: isinstance(value, str))
# Types of parts; an encoder of type lstm is another model, without layers to mix.
_TYPES = {
    "encoder": Values("elmo", lambda value: str(value).lower() == "elmo"),
    "token_embedder": Values("cnn", lambda value: str(value).lower() == "cnn"),
}
_ADVICE = "Copy the whole folder of ELMoForManyLangs again."

_LSTM_NAMES = {
    "input_linearity.weight": "input.weight",
    "state_linearity.weight": "recurrent.weight",
    "state_linearity.bias": "bias",
    "state_projection.weight": "projection.weight",
}

Parameters = Dict[str, torch.Tensor]
Views = List[torch.Tensor]


class _Table(NamedTuple):
    """A `.dic` file: the row of each entry, in the order of the rows, and the number of lines."""

    rows: Dict[str, int]
    num_rows: int


def is_many_langs(folder: Path) -> bool:
    """Whether a folder comes from ELMoForManyLangs, complete or not."""
    return any((folder / name).is_file() for name in (_TOKEN_LAYER, _LSTM))


def find_many_langs(folder: Path) -> Tuple[BilmOptions, Callable[[], Parameters]]:
    """
    The options of the biLM in a folder of ELMoForManyLangs, and how to read its parameters:
    `config.json`, the configuration that it names, `token_embedder.pkl`, `encoder.pkl`, and
    `char.dic` and `word.dic`, one of which may be missing if the configuration does not use it.

    Nothing in the folder is executed, and nothing outside of it is read. Both raise
    `ConfigurationError` if a file is missing, damaged, not finite, or does not fit the others, or
    if the encoder or the token embedder is an LSTM.
    """
    with _configuration_errors():
        options, characters, words = _options(folder)

    def read() -> Parameters:
        with _configuration_errors():
            return _parameters(folder, options, characters, words)

    return options, read


@contextmanager
def _configuration_errors() -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError) as error:
        raise ConfigurationError(str(error)) from error


def _options(folder: Path) -> Tuple[BilmOptions, _Table, _Table]:
    config, location = _configuration(folder)
    for part, values in _TYPES.items():
        read_setting(config, f"{part}.name", location, values)
    embedder, encoder = config["token_embedder"], config["encoder"]
    char_dim, word_dim = (
        read_setting(config, f"token_embedder.{name}", location, whole_number(0))
        for name in ("char_dim", "word_dim")
    )
    expect(char_dim or word_dim, location, "`char_dim` or `word_dim` above 0", "0 for both")
    empty = _Table({}, 0)
    characters = _table(folder, _CHARACTERS, CHARACTER_SPECIALS) if char_dim else empty
    words = _table(folder, _WORDS, WORD_SPECIALS) if word_dim else empty
    cnn: Dict[str, Any] = {
        "character_unit": "table",
        "n_characters": len(characters.rows) + 1,
        "max_characters_per_token": embedder.get("max_characters_per_token"),
        "embedding": {"dim": char_dim or 1},
        "activation": embedder.get("activation", "relu"),
    }
    if char_dim:
        cnn["characters"] = list(characters.rows)
        cnn.update(filters=embedder.get("filters"), n_highway=embedder.get("n_highway"))
    if word_dim:
        cnn.update(words=list(words.rows), word_dim=word_dim)
    lstm = {**encoder, "use_skip_connections": True}
    del lstm["name"]
    # Errors have the names of this configuration.
    source = {"token_embedder": cnn, "encoder": lstm}
    read_part(CharacterTableOptions, source, "token_embedder", location)
    read_part(LstmOptions, source, "encoder", location)
    return BilmOptions.from_dict({"char_cnn": cnn, "lstm": lstm}, location), characters, words


def _configuration(folder: Path) -> Tuple[Dict[str, Any], str]:
    """The configuration that `config.json` names, and its file."""
    path = folder / _CONFIG
    named = read_setting(_json(path), "config_path", str(path), _PATH)
    # It is often a path on the computer of the authors.
    name = PureWindowsPath(named).name
    if not (folder / name).is_file() and name in _KNOWN_CONFIGS:
        return _KNOWN_CONFIG, f"{folder} ({name})"
    known = " or ".join(_KNOWN_CONFIGS)
    advice = f"It may be left out only if it is {known}."
    expect((folder / name).is_file(), path, f"{name or 'a file'} beside it", "none", advice)
    return _json(folder / name), str(folder / name)


def _json(path: Path) -> Dict[str, Any]:
    _expect_file(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        content = f"{type(error).__name__}: {error}"
    expect(isinstance(content, dict), path, "a JSON object", content, _ADVICE)
    return content


def _expect_file(path: Path) -> None:
    found = excerpt(", ".join(sorted(each.name for each in path.parent.glob("*"))))
    expect(path.is_file(), path.parent, f"{path.name} in it", found or "nothing", _ADVICE)


def _table(folder: Path, name: str, needed: Tuple[str, ...]) -> _Table:
    """Lines are `entry<TAB>row`. An entry of white space is U+3000; of several, the last one."""
    path = folder / name
    _expect_file(path)
    rows: Dict[str, int] = {}
    number = 0
    for number, line in numbered_lines(path, newline="\n"):
        entry, _, row = line.strip().rpartition("\t")
        is_right = row.isdecimal() and len(row) < 10 and "\t" not in entry
        expect(is_right, f"{path}:{number}", "`entry<TAB>row`", repr(line[:80]), _ADVICE)
        expect(entry not in rows or not entry, f"{path}:{number}", "another entry", entry, _ADVICE)
        rows[entry] = int(row)
    if "" in rows:
        rows["\u3000"] = rows.pop("")
    missing = [entry for entry in needed if entry not in rows]
    expect(not missing, path, f"{', '.join(needed)} in it", f"no {', '.join(missing)}", _ADVICE)
    used = set(rows.values())
    found = f"{len(used)} different ones up to {max(used)} for {len(rows)} entries"
    is_right = len(used) == len(rows) and max(used) < number
    expect(is_right, path, f"different rows below {number}, the number of lines", found, _ADVICE)
    return _Table(dict(sorted(rows.items(), key=lambda item: item[1])), number)


def _parameters(
    folder: Path, options: BilmOptions, characters: _Table, words: _Table
) -> Parameters:
    model = meta_parameters(options)
    expected = {
        file: {name: (sum(map(len, views)), *views[0].shape[1:]) for name, views in named.items()}
        for file, named in _views(options, model).items()
    }
    embeddings = {
        f"{name}.embedding.weight": (f"character_encoder.{ours}.weight", table)
        for name, ours, table in (
            ("char_emb_layer", "embedding", characters),
            ("word_emb_layer", "word_embedding", words),
        )
        if table.rows
    }
    for name, (ours, table) in embeddings.items():
        expected[_TOKEN_LAYER][name] = (table.num_rows, model[ours].size(1))
    states = {file: _state(folder / file, shapes) for file, shapes in expected.items()}
    parameters = {name: torch.zeros(each.shape) for name, each in model.items()}
    for file, named in _views(options, parameters).items():
        for name, views in named.items():
            for view, part in zip(views, states[file][name].split([len(each) for each in views])):
                view.copy_(part)
    for name, (ours, table) in embeddings.items():
        # Id 0 pads sentences.
        parameters[ours][1:] = states[_TOKEN_LAYER][name][list(table.rows.values())]
    for name, value in parameters.items():
        if ".gate." in name:
            # Their gate multiplies the input, ours what is computed from it.
            value.neg_()
        elif name.startswith("lstm.") and name.endswith(".bias"):
            # Our LSTM adds 1 to the bias of the forget gate.
            value.chunk(4)[1].sub_(1.0)
    return parameters


def _views(options: BilmOptions, parameters: Parameters) -> Dict[str, Dict[str, Views]]:
    """By file, tensors but embeddings as the views of our parameters that they join."""
    cnn = options.char_cnn
    assert cnn is not None
    token_layer, lstm = {}, {}
    for kind in ("weight", "bias"):
        token_layer[f"projection.{kind}"] = [parameters[f"character_encoder.projection.{kind}"]]
        for number in range(cnn.n_highway):
            highway = f"character_encoder.highways.{number}"
            token_layer[f"highways._layers.{number}.{kind}"] = [
                parameters[f"{highway}.{part}.{kind}"] for part in ("transform", "gate")
            ]
    for number, (width, _) in enumerate(cnn.filters):
        convolution = f"convolutions.{number}"
        weight, bias = (
            parameters[f"character_encoder.{convolution}.{kind}"] for kind in ("weight", "bias")
        )
        # Our convolutions multiply flattened windows.
        token_layer[f"{convolution}.weight"] = [weight.unflatten(1, (width, -1)).mT]
        token_layer[f"{convolution}.bias"] = [bias]
    for direction in ("forward", "backward"):
        for number in range(options.lstm.n_layers):
            layer = f"lstm.{direction}_layers.{number}"
            for theirs, ours in _LSTM_NAMES.items():
                name = f"{direction}_layer_{number}.{theirs}"
                lstm[name] = [parameters[f"{layer}.{ours}"]]
    return {_TOKEN_LAYER: token_layer, _LSTM: lstm}


def _state(path: Path, shapes: Dict[str, Shape]) -> Parameters:
    """A state dict in float32, of exactly these shapes."""
    _expect_file(path)
    state = read_state(path, str(path))
    for name in {**shapes, **state}:
        value: Any = state.get(name, "nothing")
        found, is_right = str(value)[:80], False
        if isinstance(value, torch.Tensor):
            found = f"{tuple(value.shape)} of {str(value.dtype).removeprefix('torch.')}"
            is_right = value.is_floating_point() and tuple(value.shape) == shapes.get(name)
        expected = f"floats of shape {shapes[name]}" if name in shapes else "nothing"
        advice = f"It does not fit the configuration or the tables. {_ADVICE}"
        expect(is_right, path, f"{expected} as {name}", found, advice)
        state[name] = value.float()
        is_finite = bool(state[name].isfinite().all())
        expect(is_finite, path, f"finite numbers in {name}", "NaN or infinity", _ADVICE)
    return state
