"""
Folders of [ELMoForManyLangs](https://github.com/HIT-SCIR/ELMoForManyLangs), the biLMs of 44
languages by [Che et al. (2018)](https://aclanthology.org/K18-2005).
"""

import json
import os
from dataclasses import MISSING
from os import PathLike
from pathlib import Path, PureWindowsPath
from typing import Any, Dict, NamedTuple, Tuple, Union

import torch
from torch.nn.functional import pad

from elmo_plugin.bilm.options import CHARACTER_SPECIALS, WORD_SPECIALS, BilmOptions
from elmo_plugin.bilm.settings import ACTIVATION, BOUND, FILTERS, Kind, read_setting, whole_number
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
_PATH = Kind("the path of a file", lambda value: isinstance(value, str))
_ENCODER = Kind(
    "elmo (an encoder of type lstm is another model, without layers to mix)",
    lambda value: isinstance(value, str) and value.lower() == "elmo",
)
_EMBEDDER = Kind(
    "cnn (words cannot be read by an LSTM here)",
    lambda value: isinstance(value, str) and value.lower() == "cnn",
)
_ADVICE = "Copy the whole folder of ELMoForManyLangs again."

# For each tensor of a file its shape and the name of our parameter.
Shape = Tuple[int, ...]
Parameters = Dict[str, torch.Tensor]


class _Table(NamedTuple):
    """A `.dic` file: the row of each entry, in the order of the rows, and the number of lines."""

    rows: Dict[str, int]
    num_rows: int


def is_many_langs(folder: Union[str, PathLike]) -> bool:
    """Whether a folder comes from ELMoForManyLangs, complete or not."""
    folder = Path(folder).expanduser()
    if any(os.path.isfile(folder / name) for name in (_TOKEN_LAYER, _LSTM)):
        return True
    try:
        config = json.loads((folder / _CONFIG).read_text(encoding="utf-8"))
    # Other programs write a `config.json`, too.
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(config, dict) and "config_path" in config


def many_langs_options(folder: Union[str, PathLike]) -> BilmOptions:
    """The options of a folder of ELMoForManyLangs. For errors see `read_many_langs`."""
    try:
        return _options(Path(folder).expanduser())[0]
    except (OSError, ValueError) as error:
        raise ConfigurationError(str(error)) from error


def read_many_langs(folder: Union[str, PathLike]) -> Tuple[BilmOptions, Parameters]:
    """
    The options and parameters of the biLM in a folder of ELMoForManyLangs: `config.json`, the
    configuration that it names, `token_embedder.pkl`, `encoder.pkl`, and `char.dic` and `word.dic`,
    one of which may be missing if the configuration does not use it.

    Nothing in the folder is executed, and nothing outside of it is read. Shapes are checked before
    parameters are built. Raises `ConfigurationError` if a file is missing, damaged, not finite, or
    does not fit the others, or if the encoder or the token embedder is an LSTM.
    """
    folder = Path(folder).expanduser()
    try:
        options, characters, words = _options(folder)
        token_layer = _token_layer(folder, options, characters, words)
        return options, {**token_layer, **_lstm(folder, options)}
    except (OSError, ValueError) as error:
        raise ConfigurationError(str(error)) from error


def _options(folder: Path) -> Tuple[BilmOptions, _Table, _Table]:
    config, location = _configuration(folder)

    def read(name: str, kind: Kind, default: Any = MISSING) -> Any:
        return read_setting(config, name, location, kind, default, "configuration file")

    read("encoder.name", _ENCODER)
    read("token_embedder.name", _EMBEDDER)
    char_dim, word_dim = (
        read(f"token_embedder.{name}", whole_number(0)) for name in ("char_dim", "word_dim")
    )
    expect(char_dim or word_dim, location, "`char_dim` or `word_dim` above 0", "0 for both")
    empty = _Table({}, 0)
    characters = _table(folder, _CHARACTERS, CHARACTER_SPECIALS) if char_dim else empty
    words = _table(folder, _WORDS, WORD_SPECIALS) if word_dim else empty
    cnn: Dict[str, Any] = {
        "character_unit": "table",
        "n_characters": len(characters.rows) + 1,
        "max_characters_per_token": read(
            "token_embedder.max_characters_per_token", whole_number(7, 10_000)
        ),
        "embedding": {"dim": char_dim or 1},
        "activation": read("token_embedder.activation", ACTIVATION, "relu"),
    }
    if char_dim:
        cnn["characters"] = list(characters.rows)
        cnn["filters"] = read("token_embedder.filters", FILTERS)
        cnn["n_highway"] = read("token_embedder.n_highway", whole_number(0, 1_000))
    if word_dim:
        cnn.update(words=list(words.rows), word_dim=word_dim)
    lstm = {
        "dim": read("encoder.dim", whole_number()),
        "projection_dim": read("encoder.projection_dim", whole_number()),
        "n_layers": read("encoder.n_layers", whole_number(maximum=1_000)),
        "cell_clip": read("encoder.cell_clip", BOUND, None),
        "proj_clip": read("encoder.proj_clip", BOUND, None),
        "use_skip_connections": True,
    }
    return BilmOptions.from_dict({"char_cnn": cnn, "lstm": lstm}, location), characters, words


def _configuration(folder: Path) -> Tuple[Dict[str, Any], str]:
    """The configuration that `config.json` names, and its file."""
    path = folder / _CONFIG
    named = read_setting(_json(path), "config_path", str(path), _PATH, origin=_CONFIG)
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


def _token_layer(
    folder: Path, options: BilmOptions, characters: _Table, words: _Table
) -> Parameters:
    cnn = options.char_cnn
    assert cnn is not None
    dim, num_filters = cnn.embedding_dim, cnn.num_filters
    shapes: Dict[str, Shape] = {
        "projection.weight": (options.token_dim, cnn.num_features),
        "projection.bias": (options.token_dim,),
    }
    embeddings = {"embedding": ("char_emb_layer", characters, dim)}
    if words.rows:
        embeddings["word_embedding"] = ("word_emb_layer", words, cnn.num_features - num_filters)
    for part, table, width in embeddings.values():
        if table.rows:
            shapes[f"{part}.embedding.weight"] = (table.num_rows, width)
    for number, (width, count) in enumerate(cnn.filters):
        shapes[f"convolutions.{number}.weight"] = (count, dim, width)
        shapes[f"convolutions.{number}.bias"] = (count,)
    for number in range(cnn.n_highway):
        shapes[f"highways._layers.{number}.weight"] = (2 * num_filters, num_filters)
        shapes[f"highways._layers.{number}.bias"] = (2 * num_filters,)
    state = _state(folder / _TOKEN_LAYER, shapes)
    parameters = {}
    for ours, (part, table, width) in embeddings.items():
        rows = torch.tensor(list(table.rows.values()), dtype=torch.long)
        weight = state[f"{part}.embedding.weight"][rows] if table.rows else torch.empty(0, width)
        # Id 0 pads sentences.
        parameters[f"{ours}.weight"] = pad(weight, (0, 0, 1, 0))
    for number in range(len(cnn.filters)):
        name = f"convolutions.{number}"
        # Our convolutions multiply flattened windows.
        parameters[f"{name}.weight"] = state[f"{name}.weight"].transpose(1, 2).flatten(1)
        parameters[f"{name}.bias"] = state[f"{name}.bias"]
    for number in range(cnn.n_highway):
        for kind in ("weight", "bias"):
            transform, gate = state[f"highways._layers.{number}.{kind}"].chunk(2)
            parameters[f"highways.{number}.transform.{kind}"] = transform
            # Their gate multiplies the input, ours what is computed from it.
            parameters[f"highways.{number}.gate.{kind}"] = -gate
    for kind in ("weight", "bias"):
        parameters[f"projection.{kind}"] = state[f"projection.{kind}"]
    return {f"character_encoder.{name}": value for name, value in parameters.items()}


def _lstm(folder: Path, options: BilmOptions) -> Parameters:
    dim, output_dim = options.lstm.dim, options.lstm.output_dim
    parts: Dict[str, Tuple[str, Shape]] = {
        "input_linearity.weight": ("input.weight", (4 * dim, output_dim)),
        "state_linearity.weight": ("recurrent.weight", (4 * dim, output_dim)),
        "state_linearity.bias": ("bias", (4 * dim,)),
        "state_projection.weight": ("projection.weight", (output_dim, dim)),
    }
    names: Dict[str, Tuple[str, Shape]] = {
        f"{direction}_layer_{number}.{theirs}": (
            f"lstm.{direction}_layers.{number}.{ours}",
            shape,
        )
        for direction in ("forward", "backward")
        for number in range(options.lstm.n_layers)
        for theirs, (ours, shape) in parts.items()
    }
    state = _state(folder / _LSTM, {theirs: shape for theirs, (_, shape) in names.items()})
    parameters = {ours: state[theirs] for theirs, (ours, _) in names.items()}
    for name, value in parameters.items():
        if name.endswith(".bias"):
            # Our LSTM adds 1 to the bias of the forget gate.
            i, f, g, o = value.chunk(4)
            parameters[name] = torch.cat([i, f - 1.0, g, o])
    return parameters


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
            if not _is_stored(value):
                found, is_right = f"{found} that are not stored one by one", False
        expected = f"floats of shape {shapes[name]}" if name in shapes else "nothing"
        advice = f"It does not fit the configuration or the tables. {_ADVICE}"
        expect(is_right, path, f"{expected} as {name}", found, advice)
        state[name] = value.float()
        is_finite = bool(state[name].isfinite().all())
        expect(is_finite, path, f"finite numbers in {name}", "NaN or infinity", _ADVICE)
    return state


def _is_stored(value: torch.Tensor) -> bool:
    """False for a tensor that a small file could make as large as it likes."""
    return value.layout == torch.strided and value.device.type == "cpu" and value.is_contiguous()
