"""Packs trained models into small archives."""

import gzip
import json
import os
import shutil
import tarfile
import tempfile
from os import PathLike
from pathlib import Path
from typing import Any, Dict, Optional, Set, Tuple, Union

import torch

from elmo_plugin.bilm.bilm import fingerprint
from elmo_plugin.bilm.files.trained import (
    FINGERPRINT,
    TrainedModel,
    shipped_bilm,
    stored_options_by_prefix,
)
from elmo_plugin.bilm.stored_options import STORED_OPTIONS, encode_bytes, encode_stored_options
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.quantized import SCALES, quantized
from elmo_plugin.util.text_files import numbered_lines
from elmo_plugin.util.unpacking import unpacked
from elmo_plugin.util.weights import save_atomically
from elmo_plugin.util.word_vectors import NUM_TRAINED

_TRAINING_FILES = ("train_data_path", "validation_data_path", "test_data_path", "pretrained_file")


def pack(
    archive: Union[str, PathLike],
    output: Union[str, PathLike],
    num_extra_words: Optional[int] = None,
    int8: bool = False,
) -> None:
    """
    Writes a small archive of a trained model, which is loaded like any other. Nothing in the given
    archive, a `model.tar.gz` or the folder of a training run, is executed.

    Numbers have half precision. `int8`, for models of the package's tasks, stores matrices in int8
    with a scale per row. The biLM that comes with the package is left out, and `Elmo` restores it.
    `num_extra_words` words outside the training data, the most frequent ones, keep their vectors,
    by default all (see `WordVectors`). Raises `ConfigurationError` if the archive cannot be read,
    has numbers that half precision does not hold, or, with `int8`, is of no such task.
    """
    with unpacked(archive) as folder, tempfile.TemporaryDirectory() as packed_folder:
        model = TrainedModel.read(folder, str(archive))
        for name in ("config.json", "vocabulary", "meta.json"):
            if not (folder / name).exists():
                raise ConfigurationError(
                    f"{archive} holds no trained model: expected {name} in it, which AllenNLP "
                    "writes. Use the model.tar.gz or the folder of a finished training run."
                )
        packed = Path(packed_folder)
        vocabulary = shutil.copytree(
            folder / "vocabulary", packed / "vocabulary", ignore=shutil.ignore_patterns(".*")
        )
        parameters = model.parameters
        if num_extra_words is not None:
            parameters = _with_fewer_words(parameters, vocabulary, num_extra_words)
        parameters, sources = _without_shipped_bilm(parameters)
        if int8:
            # Only a `TaskModel`, known by its settings without AllenNLP, reads matrices in 8 bits.
            settings = model.config.get("model", {})
            name = str(settings.get("type"))
            if not name.startswith("elmo-") or "text_field_embedder" not in settings:
                raise ConfigurationError(
                    f"{archive}: only models of the project's tasks can be packed in 8 bits, found "
                    f"{name}."
                )
            parameters = quantized(parameters)
        save_atomically(_halved(parameters, str(archive)), packed / "weights.th")
        config = json.dumps(_portable(model.config, sources), indent=2)
        (packed / "config.json").write_text(f"{config}\n", encoding="utf-8")
        shutil.copyfile(folder / "meta.json", packed / "meta.json")
        with atomic_write(output) as unfinished:
            _write_tar(packed, unfinished)


def _with_fewer_words(
    parameters: Dict[str, torch.Tensor], vocabulary: Path, num_extra_words: int
) -> Dict[str, torch.Tensor]:
    """Keeps `num_extra_words` extra words in each namespace of `WordVectors`, and their vectors."""
    parameters = dict(parameters)
    for path in sorted(vocabulary.glob(f"*{NUM_TRAINED}.txt")):
        words = path.with_name(path.name.replace(NUM_TRAINED, ""))
        num_trained = int(path.read_text(encoding="utf-8"))
        # Words may contain other line ends than this one.
        lines = [line for _, line in numbered_lines(words, newline="\n")]
        # The padding has a row and no line.
        num_extra = len(lines) + 1 - num_trained
        for name in [name for name in parameters if name.split(".")[-1] == "extra"]:
            weight = parameters[name.removesuffix("extra") + "weight"]
            if len(weight) == num_trained and len(parameters[name]) == num_extra:
                parameters[name] = parameters[name][:num_extra_words].clone()
        kept = "".join(f"{line}\n" for line in lines[: num_trained - 1 + num_extra_words])
        words.write_text(kept, encoding="utf-8", newline="\n")
    return parameters


def _without_shipped_bilm(
    parameters: Dict[str, torch.Tensor],
) -> Tuple[Dict[str, torch.Tensor], Set[str]]:
    """Also returns the options files of the biLMs that are left out."""
    kept, sources = dict(parameters), set()
    shipped = shipped_bilm()
    for prefix, stored in stored_options_by_prefix(parameters).items():
        # Only `Elmo` restores what is left out; it has mixes beside its biLM.
        mixes = f"{prefix.removesuffix('bilm.')}mixes."
        weights = shipped.state_dict()
        del weights[STORED_OPTIONS]
        if not any(name.startswith(mixes) for name in parameters) or not all(
            prefix + name in parameters and torch.equal(parameters[prefix + name], value)
            for name, value in weights.items()
        ):
            continue
        for name in weights:
            del kept[prefix + name]
        sources.add(stored["options_file"])
        # The empty file name that `Bilm` stores for the default biLM.
        kept[f"{prefix}{STORED_OPTIONS}"] = encode_stored_options(stored["options"], "")
        kept[f"{prefix}{FINGERPRINT}"] = encode_bytes(bytes.fromhex(fingerprint(shipped)))
    return kept, sources


def _halved(parameters: Dict[str, torch.Tensor], location: str) -> Dict[str, torch.Tensor]:
    halved = {}
    for name, value in parameters.items():
        # Scales of int8 matrices are float32.
        is_halved = value.is_floating_point() and not name.endswith(SCALES)
        halved[name] = value.half() if is_halved else value.clone()
        # The scales of an int8 matrix show an infinity or NaN.
        if value.is_floating_point() and not bool(halved[name].isfinite().all()):
            raise ConfigurationError(
                f"{location}: {name} has numbers that half precision does not hold (above 65,504), "
                "or that are not finite. The training diverged; use another checkpoint."
            )
    return halved


def _portable(config: Any, sources: Set[str]) -> Any:
    """Drops files and cache of biLMs that are left out; training files lose their folders."""
    if isinstance(config, list):
        return [_portable(part, sources) for part in config]
    if not isinstance(config, dict):
        return config
    changed = {name: _portable(part, sources) for name, part in config.items()}
    for name in _TRAINING_FILES:
        if isinstance(changed.get(name), str):
            changed[name] = os.path.basename(changed[name])
    # Without `options_file`, it is the default biLM, whose source is the empty string.
    is_elmo = "options_file" in config or "cache" in config
    if is_elmo and (config.get("options_file") or "") in sources:
        changed.pop("weight_file", None)
        changed.pop("options_file", None)
        if "cache" in changed:
            changed["cache"] = False
    return changed


def _write_tar(folder: Path, output: Union[str, PathLike]) -> None:
    """Writes an archive whose bytes depend only on the names and the content of the files."""
    with open(output, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as compressed:
        with tarfile.open(fileobj=compressed, mode="w") as archive:
            for path in sorted(path for path in folder.rglob("*") if path.is_file()):
                # No owner, no time.
                member = tarfile.TarInfo(str(path.relative_to(folder)))
                member.size = path.stat().st_size
                with open(path, "rb") as file:
                    archive.addfile(member, file)
