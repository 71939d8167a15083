"""biLMs in folders and on the Hugging Face Hub."""

import os
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Mapping, Optional, Tuple, Type, TypeVar, Union

from elmo_plugin.bilm.io.weight_files import (
    WEIGHT_FILE,
    ModuleWithOptions,
    read_weights,
    save_weights,
)
from elmo_plugin.bilm.options import OPTIONS_FILE, BilmOptions
from elmo_plugin.bilm.vocabulary_file import VOCABULARY_FILE, write_vocabulary
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import expanded
from elmo_plugin.util.optional import optional_package

CONFIG_FILE = "config.json"
SAFETENSORS_FILE = "model.safetensors"
CARD_FILE = "README.md"
# Names of options and weights. The first pair whose two files exist is read.
_PAIRS = ((CONFIG_FILE, SAFETENSORS_FILE), (OPTIONS_FILE, WEIGHT_FILE))

Self = TypeVar("Self", bound="PretrainedFiles")


class PretrainedFiles(ModuleWithOptions):
    """
    The methods of a biLM for folders and repositories of the Hugging Face Hub. They have the names
    and the meaning of those of `huggingface_hub.ModelHubMixin`; local folders do not need that
    package.
    """

    @classmethod
    def from_pretrained(
        cls: Type[Self],
        name: Union[str, PathLike],
        revision: Optional[str] = None,
        token: Optional[str] = None,
        **settings: Any,
    ) -> Self:
        """
        # Parameters

        name : `Union[str, PathLike]`
            A folder, or the name of a repository on the Hub, which needs the package
            huggingface_hub. It holds `config.json` and `model.safetensors`, or `options.json` and
            `weights.hdf5`; with token embeddings also `vocabulary.txt`.
        revision, token : `Optional[str]`
            Branch, tag or commit of the repository, and the access token for a private one.
        **settings : `Any`
            Other arguments of the constructor, such as `warm_up`.

        # Raises

        `ConfigurationError`
            If there is no such folder or repository, a file is missing or damaged, or the two files
            do not fit each other.
        `ImportError`
            If `name` is a repository and huggingface_hub is not installed.
        """
        folder = Path(os.path.expanduser(name))
        if not folder.is_dir():
            folder = _downloaded(str(name), revision, token)
        options_file, weight_file = _pair(folder, name)
        options = BilmOptions.from_file(options_file)
        weights = read_weights(options, weight_file)
        bilm = cls(options, source=str(options_file), **settings)
        bilm.load_state_dict(weights, strict=False)
        return bilm.eval()

    def save_pretrained(
        self,
        folder: Union[str, PathLike],
        metrics: Optional[Mapping[str, float]] = None,
        dtype: str = "float32",
    ) -> None:
        """
        Writes `config.json`, `model.safetensors`, with token embeddings `vocabulary.txt`, and a
        model card, `README.md`. Replaces such files; a model card only if `metrics` are given.

        # Parameters

        folder : `Union[str, PathLike]`
            Created if needed.
        metrics : `Optional[Mapping[str, float]]`, optional (default = `None`)
            For the model card, for example `{"perplexity on the held-out text": 39.7}`.
        dtype : `str`, optional (default = `"float32"`)
            See `save_weights`, also for errors.
        """
        folder = expanded(folder)
        save_files(self, folder / CONFIG_FILE, folder / SAFETENSORS_FILE, dtype)
        if metrics is not None or not (folder / CARD_FILE).exists():
            with atomic_write(folder / CARD_FILE) as card:
                card.write_text(_model_card(self.options, metrics or {}), encoding="utf-8")

    def push_to_hub(
        self,
        repo_id: str,
        metrics: Optional[Mapping[str, float]] = None,
        private: Optional[bool] = None,
        token: Optional[str] = None,
        commit_message: str = "Upload a biLM of elmo_plugin",
    ) -> str:
        """
        Uploads the files of `save_pretrained` to the repository `repo_id`, which is created if
        needed, and returns the URL of the commit. A model card that is there is replaced only if
        `metrics` are given. For the other parameters see `huggingface_hub.HfApi.create_repo` and
        `upload_folder`.
        """
        api = _huggingface_hub(f"Uploading to {repo_id}").HfApi(token=token)
        repo_id = api.create_repo(repo_id, private=private, exist_ok=True).repo_id
        keeps_card = metrics is None and api.file_exists(repo_id, CARD_FILE)
        with TemporaryDirectory() as folder:
            self.save_pretrained(folder, metrics)
            commit = api.upload_folder(
                repo_id=repo_id,
                folder_path=folder,
                commit_message=commit_message,
                ignore_patterns=[CARD_FILE] if keeps_card else None,
            )
        return str(commit)


def save_files(
    bilm: ModuleWithOptions, options_file: Path, weight_file: Path, dtype: str, **changes: Any
) -> None:
    """
    Writes weights and options, and for token embeddings `vocabulary.txt` beside the options, each
    through `atomic_write`; `changes` are settings to write in place of those of the options.
    """
    save_weights(bilm, weight_file, dtype)
    if bilm.options.words is not None:
        words = [(word, None) for word in bilm.options.words]
        write_vocabulary(words, options_file.with_name(VOCABULARY_FILE))
    with atomic_write(options_file) as unfinished:
        unfinished.write_text(bilm.options.to_json(**changes), encoding="utf-8")


def _pair(folder: Path, name: Union[str, PathLike]) -> Tuple[Path, Path]:
    """The files of options and weights."""
    for options, weights in _PAIRS:
        # Other programs write a `config.json` too.
        if (folder / options).exists() and (folder / weights).exists():
            return folder / options, folder / weights
    for options, weights in _PAIRS:
        if (folder / options).exists():
            raise ConfigurationError(f"{name} holds {options}, but not {weights}: expected both.")
    expected = ", or ".join(" and ".join(pair) for pair in _PAIRS)
    raise ConfigurationError(f"{name} holds no biLM: expected {expected} in it.")


def _downloaded(name: str, revision: Optional[str], token: Optional[str]) -> Path:
    if os.path.isabs(name) or name.startswith((".", "~")) or name.count("/") > 1:
        raise ConfigurationError(f"Folder {name} does not exist (relative to {os.getcwd()}).")
    hub = _huggingface_hub(
        f"{name} is no folder (relative to {os.getcwd()}), and reading a repository"
    )
    patterns = [file for pair in _PAIRS for file in pair] + [VOCABULARY_FILE]
    try:
        found = hub.snapshot_download(name, revision=revision, token=token, allow_patterns=patterns)
    # The package raises errors of many classes, those of its HTTP library included.
    except Exception as error:
        reason = str(error).partition("\n")[0]
        raise ConfigurationError(
            f"{name} is neither a folder (relative to {os.getcwd()}) nor a repository that can be "
            f"read from the Hugging Face Hub ({reason})."
        ) from error
    return Path(found)


def _huggingface_hub(purpose: str) -> Any:
    return optional_package("huggingface_hub", f"{purpose} on the Hugging Face Hub")


def _model_card(options: BilmOptions, metrics: Mapping[str, float]) -> str:
    directions = "bidirectional" if options.bidirectional else "forward-only"
    reads = "characters" if options.char_cnn is not None else "words"
    lines = [
        "---",
        "library_name: elmo_plugin",
        "pipeline_tag: feature-extraction",
        "tags:",
        "- elmo",
        "---",
        "",
        f"# A {directions} language model for ELMo",
        "",
        f"It reads {reads} and has {options.num_layers} layers of {options.output_dim} numbers per "
        f"token, the token layer included, and {options.num_parameters:,} parameters "
        "([Peters et al. 2018](https://arxiv.org/abs/1802.05365)).",
        "",
        "```python",
        "from elmo_plugin import Bilm, embed_sentences",
        "",
        'bilm = Bilm.from_pretrained("this folder, or the name of this repository")',
        'layers = next(embed_sentences(bilm, [["The", "play", "began"]]))',
        "```",
        "",
    ]
    if metrics:
        rows = [f"| {name} | {value:g} |" for name, value in metrics.items()]
        lines += ["| measured | value |", "| --- | ---: |", *rows, ""]
    return "\n".join(lines)
