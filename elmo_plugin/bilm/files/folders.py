"""Folders with all files of a biLM, and repositories of the Hugging Face Hub."""

import os
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, List, Mapping, Optional, Type, Union

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.files.find import find_bilm
from elmo_plugin.bilm.files.kinds import CONFIG_FILE, SAFETENSORS_FILE
from elmo_plugin.bilm.files.layout import WEIGHT_FILE, save_weights
from elmo_plugin.bilm.files.load import build
from elmo_plugin.bilm.files.softmax import SOFTMAX_FILE, SoftmaxWeights, save_softmax
from elmo_plugin.bilm.options import OPTIONS_FILE, BilmOptions
from elmo_plugin.bilm.vocabulary_file import VOCABULARY_FILE, write_vocabulary
from elmo_plugin.util.atomic_write import atomic_write, remove_abandoned, unfinished_suffix
from elmo_plugin.util.errors import ConfigurationError, optional_package
from elmo_plugin.util.files import expanded

CARD_FILE = "README.md"
_EXPORTED = (OPTIONS_FILE, WEIGHT_FILE, SOFTMAX_FILE, VOCABULARY_FILE)

_CARD = """\
---
library_name: elmo_plugin
pipeline_tag: feature-extraction
tags:
- elmo
---

# A language model for ELMo

It has {options.num_layers} layers of {options.output_dim} numbers per token, the token layer \
included, and {num_parameters:,} parameters \
([Peters et al. 2018](https://arxiv.org/abs/1802.05365)).

```python
from elmo_plugin import Bilm, embed_sentences

bilm = Bilm.from_pretrained("this folder, or the name of this repository")
layers = next(embed_sentences(bilm, [["The", "play", "began"]]))
```
"""


def from_pretrained(
    cls: Type[Bilm],
    name: Union[str, PathLike],
    revision: Optional[str] = None,
    token: Optional[str] = None,
    **settings: Any,
) -> Bilm:
    """
    Loads a biLM from whatever `name` is, see `find_bilm`; unlike `load_bilm`, also a forward-only
    one. For a repository of the Hugging Face Hub, which needs the package huggingface_hub,
    `revision` is a branch, tag or commit, and `token` the access token for a private one.
    `settings` are other arguments of the constructor, such as `warm_up`. Raises
    `ConfigurationError` if there is no such biLM, or a file is missing, damaged or does not fit.
    """
    with find_bilm(name, revision=revision, token=token) as found:
        return build(found.options, found.read, cls, source=str(name), **settings)


def save_pretrained(
    bilm: Bilm,
    folder: Union[str, PathLike],
    metrics: Optional[Mapping[str, float]] = None,
    dtype: str = "float32",
) -> None:
    """
    Writes `config.json`, `model.safetensors`, with token embeddings `vocabulary.txt`, and a model
    card, `README.md`. A card that is there is replaced only if there are `metrics` to show in it,
    such as `{"perplexity on the held-out text": 39.7}`. For `dtype` and errors see `save_weights`.
    """
    folder = expanded(folder)
    _save_files(bilm, folder / CONFIG_FILE, folder / SAFETENSORS_FILE, dtype)
    if metrics is not None or not (folder / CARD_FILE).exists():
        num_parameters = sum(parameter.numel() for parameter in bilm.parameters())
        text = _CARD.format(options=bilm.options, num_parameters=num_parameters)
        rows = [f"| {name} | {value:g} |\n" for name, value in (metrics or {}).items()]
        table = "\n| measured | value |\n| --- | ---: |\n" if rows else ""
        with atomic_write(folder / CARD_FILE) as card:
            card.write_text("".join([text, table, *rows]), encoding="utf-8")


def push_to_hub(
    bilm: Bilm,
    repo_id: str,
    metrics: Optional[Mapping[str, float]] = None,
    private: Optional[bool] = None,
    token: Optional[str] = None,
    commit_message: str = "Upload a biLM of elmo_plugin",
) -> str:
    """
    Uploads the files of `save_pretrained` and returns the URL of the commit. Creates the repository
    if needed, and replaces its model card only if `metrics` are given. For the other parameters see
    `huggingface_hub.HfApi.create_repo` and `upload_folder`.
    """
    hub = optional_package("huggingface_hub", f"Uploading to {repo_id} on the Hugging Face Hub")
    api = hub.HfApi(token=token)
    repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
    keeps_card = metrics is None and api.file_exists(repo_id, CARD_FILE)
    with TemporaryDirectory() as folder:
        save_pretrained(bilm, folder, metrics)
        commit = api.upload_folder(
            repo_id=repo_id,
            folder_path=folder,
            commit_message=commit_message,
            ignore_patterns=[CARD_FILE] if keeps_card else None,
        )
    return str(commit)


def save_bilm(
    bilm: Bilm,
    folder: Union[str, PathLike],
    softmax: Optional[SoftmaxWeights] = None,
    dtype: str = "float32",
    force: bool = False,
) -> List[Path]:
    """
    Writes `options.json` and `weights.hdf5` in the layout of the published biLMs and returns the
    files: also `softmax.hdf5` for a `softmax`, and `vocabulary.txt` for a softmax or token
    embeddings. No file appears before all of them are complete.

    `force` replaces all these files, and keeps others in the folder. For `dtype` and its errors see
    `save_weights`. Raises `ConfigurationError` if a file exists without `force`, or the softmax
    does not fit.
    """
    folder = expanded(folder)
    check_export_folder(folder, force)
    changes: Dict[str, Any] = {}
    if softmax is not None:
        softmax.check_fit(bilm.options, "The softmax")
        if bilm.options.words not in (None, tuple(softmax.words)):
            raise ConfigurationError(
                "The softmax does not fit the token embeddings: expected the same words in the "
                "same order, because one vocabulary.txt serves both, found others."
            )
        changes["n_tokens_vocab"] = len(softmax.words)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # A folder's parent may be on another disk, to which a file cannot be renamed.
    above = folder if folder.is_dir() else folder.parent
    remove_abandoned(above)
    with TemporaryDirectory(unfinished_suffix(), "elmo-export-", above) as temporary:
        # Not the temporary folder itself, which only its owner may read.
        unfinished = Path(temporary, "files")
        _save_files(bilm, unfinished / OPTIONS_FILE, unfinished / WEIGHT_FILE, dtype, **changes)
        if softmax is not None:
            save_softmax(softmax, unfinished, dtype)
        _move(unfinished, folder)
    return [folder / name for name in _EXPORTED if (folder / name).exists()]


def check_export_folder(folder: Union[str, PathLike], force: bool) -> None:
    """Raises the `ConfigurationError` of `save_bilm` for the folder, before anything is written."""
    folder = expanded(folder)
    if folder.exists() and not folder.is_dir():
        raise ConfigurationError(f"{folder} is a file; expected a folder, existing or new.")
    there = [name for name in _EXPORTED if (folder / name).exists()]
    if there and not force:
        raise ConfigurationError(
            f"{folder} already holds {', '.join(there)}. Choose another folder, or replace them "
            "with `force` (--force)."
        )


def allennlp_obstacle(options: BilmOptions) -> Optional[str]:
    """The first setting that AllenNLP's `Elmo` does not support; `None` if it supports all."""
    cnn, lstm = options.char_cnn, options.lstm
    if cnn is None:
        return "there is no `char_cnn`"
    longest = cnn.max_characters_per_token
    obstacles = [
        (not options.bidirectional, "`bidirectional` is false"),
        (not cnn.projection, "`char_cnn.projection` is false"),
        (lstm.projection_dim is None, "`lstm.projection_dim` is null"),
        (not lstm.use_skip_connections, "`lstm.use_skip_connections` is false"),
        (cnn.character_unit != "byte", f"`char_cnn.character_unit` is {cnn.character_unit}"),
        (longest != 50, f"`char_cnn.max_characters_per_token` is {longest}, not 50"),
    ]
    return next((setting for is_obstacle, setting in obstacles if is_obstacle), None)


def _save_files(
    bilm: Bilm, options_file: Path, weight_file: Path, dtype: str, **changes: Any
) -> None:
    """Writes weights, words of token embeddings, and options, with `changes`."""
    save_weights(bilm, weight_file, dtype)
    if bilm.options.words is not None:
        words = [(word, None) for word in bilm.options.words]
        write_vocabulary(words, options_file.with_name(VOCABULARY_FILE))
    with atomic_write(options_file) as unfinished:
        unfinished.write_text(bilm.options.to_json(**changes), encoding="utf-8")


def _move(unfinished: Path, folder: Path) -> None:
    if not folder.exists():
        # One rename, so that all files appear at once.
        os.rename(unfinished, folder)
        return
    # A kill must not leave files of two biLMs side by side.
    for name in _EXPORTED:
        (folder / name).unlink(missing_ok=True)
    # The options last, without which the others are not read.
    for name in reversed(_EXPORTED):
        if (unfinished / name).exists():
            os.replace(unfinished / name, folder / name)
