"""Damages the content of files in each of the formats, for `fuzz_inputs.py`."""

import gzip
import io
import json
import tarfile
from pathlib import Path
from random import Random
from typing import Any, Callable, Dict, List

import h5py
import numpy
import safetensors.numpy
import torch

DEEP = "@deep@"
VALUES = [None, True, -1, 0, 3, 2**70, -1e308, float("nan"), "", "0", "x", "\ud800", "é\u2028\0",
          "../x", [], {}, [[]], [None], ["a", 1], {"a": 1}, {"type": "x"}, DEEP]  # fmt: skip
TOKENS = [b"", b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\t", b" ", b"\r", b"\n\n", b"\x85", b"(",
          b")", b"*", b"-", b"0", b"-1", b"nan", b"1e999", b"{", b'"', b"\\ud83d", b"(" * 500,
          b"\xe2\x80\xa8", b"#begin document", b"x" * 7000, "\U0001f600".encode()]  # fmt: skip

Damage = Callable[[bytes, Random], bytes]


def damage_bytes(content: bytes, draw: Random) -> bytes:
    for _ in range(draw.choice([1, 1, 2, 20])):
        at, length = draw.randrange(len(content) + 1), draw.choice([1, 1, 8, 100, 5000])
        rest = content[at + length :] if draw.random() < 0.9 else b""
        between = draw.choice(
            [b"", draw.randbytes(length), content[:length] + content[at:][:length]]
        )
        content = content[:at] + between + rest
    return content


def damage_lines(content: bytes, draw: Random) -> bytes:
    if draw.random() < 0.1:
        return damage_bytes(content, draw)
    lines = content.split(b"\n")
    for _ in range(draw.choice([1, 1, 2, 5])):
        number, token = draw.randrange(len(lines)), draw.choice(TOKENS)
        line = lines[number]
        cell = draw.choice(line.split(draw.choice([b"\t", None])) or [b""])
        changes = [line.replace(cell, token, 1), line.replace(cell, token, 1), line + b" " + token]
        changes += [line[: draw.randrange(len(line) + 1)], token, line + b"\n" + draw.choice(lines)]
        lines[number] = draw.choice(changes)
    return b"\n".join(lines)


def damage_value(value: Any, draw: Random) -> Any:
    """Changes one value somewhere in nested JSON."""
    if isinstance(value, (dict, list)) and value and draw.random() < 0.9:
        key = draw.choice(list(value) if isinstance(value, dict) else range(len(value)))
        kind = draw.randrange(8)
        if kind == 0:
            del value[key]
        elif kind == 1 and isinstance(value, dict):
            value[draw.choice(["x", "", "type", "\ud800"])] = value.pop(key)
        else:
            value[key] = damage_value(value[key], draw)
        return value
    if isinstance(value, str) and draw.random() < 0.3:
        return damage_lines(value.encode(errors="replace"), draw).decode(errors="replace")
    return draw.choice(VALUES)


def damage_json(content: bytes, draw: Random) -> bytes:
    if draw.random() < 0.15:
        return damage_bytes(content, draw)
    try:
        lines, number = [json.loads(content)], 0
    except ValueError:  # An object per line.
        lines = content.decode().splitlines()
        number = draw.randrange(len(lines))
        lines[number] = json.loads(lines[number])
    lines[number] = json.dumps(damage_value(lines[number], draw))
    return "\n".join(lines).replace(f'"{DEEP}"', "[" * 9000 + "]" * 9000).encode()


def damage_arrays(arrays: Dict[str, Any], draw: Random) -> Dict[str, Any]:
    """Changes one array of a file."""
    arrays, name, kind = dict(arrays), draw.choice(sorted(arrays)), draw.randrange(8)
    array = arrays.pop(name)
    if kind == 0:
        return arrays or {"x": array}
    if kind == 1:
        return {**arrays, draw.choice(["x", name[1:] or "y", f"{name}/x"]): array}
    if kind < 4 and array.size and array.dtype.kind == "f":
        array = array.copy()
        array.reshape(-1)[draw.randrange(array.size)] = draw.choice([numpy.nan, numpy.inf, 3e38])
    types = ["int64", "float64", "float16", "bool", "uint8", "complex64"]
    shapes = [(-1,), (1, *array.shape), (*array.shape, 1), array.shape[::-1]]
    changes = [array, array[: draw.randrange(3)] if array.ndim else array]
    with numpy.errstate(all="ignore"):
        changes.append(array.astype(draw.choice(types)))
    changes += [array.reshape(draw.choice(shapes)), array.sum()]
    return {**arrays, name: numpy.array(changes[max(kind - 3, 0)])}


def damage_hdf5(content: bytes, draw: Random) -> bytes:
    if draw.random() < 0.4:
        return damage_bytes(content, draw)
    arrays: Dict[str, Any] = {}
    with h5py.File(io.BytesIO(content)) as file:
        file.visititems(lambda name, item: arrays.update({name: item}))
        arrays = {name: item[...] for name, item in arrays.items() if hasattr(item, "shape")}
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for name, array in damage_arrays(arrays, draw).items():
            file[name] = array
        if draw.random() < 0.1:
            file["/".join("g" * draw.choice([20, 3000]))] = draw.choice([b"text", 1.0])
    return buffer.getvalue()


def damage_safetensors(content: bytes, draw: Random) -> bytes:
    if draw.random() < 0.5:
        return safetensors.numpy.save(damage_arrays(safetensors.numpy.load(content), draw))
    length = int.from_bytes(content[:8], "little")
    header = damage_json(content[8 : 8 + length], draw)
    return len(header).to_bytes(8, "little") + header + content[8 + length :]


def damage_state(content: bytes, draw: Random) -> bytes:
    """Of a `torch.save`d dictionary; with valid checksums in most cases."""
    if draw.random() < 0.2:
        return damage_bytes(content, draw)
    state: Any = torch.load(io.BytesIO(content), weights_only=True)
    arrays = damage_arrays({name: value.numpy() for name, value in state.items()}, draw)
    changed = {name: torch.from_numpy(array) for name, array in arrays.items()}
    others: List[Any] = [[], {}, {"a": 1}, {**state, 3: 4}, {**state, "x": "y"}]
    buffer = io.BytesIO()
    torch.save(changed if draw.random() < 0.7 else draw.choice(others), buffer)
    return buffer.getvalue()


def damage_gzip(content: bytes, draw: Random) -> bytes:
    if draw.random() < 0.3:
        return damage_bytes(content, draw)
    return gzip.compress(damage_lines(gzip.decompress(content), draw), 1)


def damage_archive(content: bytes, draw: Random) -> bytes:
    """A member of a `model.tar.gz`, with valid checksums in most cases."""
    if draw.random() < 0.1:
        return damage_bytes(content, draw)
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        members: Dict[str, Any] = {m.name: archive.extractfile(m) for m in archive if m.isfile()}
        members = {name: member.read() for name, member in members.items()}
    name, kind = draw.choice(sorted(members)), draw.randrange(12)
    member = members.pop(name)
    if kind == 1:
        members[draw.choice(["x", f"{name}/x", f"vocabulary/{name}"])] = member
    elif kind:
        by_suffix = {".json": damage_json, ".th": damage_state}
        members[name] = by_suffix.get(Path(name).suffix, damage_lines)(member, draw)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", compresslevel=1) as made:
        for name, member in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(member)
            made.addfile(info, io.BytesIO(member))
    return buffer.getvalue()
