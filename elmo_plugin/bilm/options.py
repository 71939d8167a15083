"""The shape of a biLM, read from bilm-tf's `options.json`."""

import json
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from os import PathLike
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import torch

from elmo_plugin.bilm.settings_reader import (
    BOOLEAN,
    BOUND,
    FILTERS,
    WORDS,
    one_of,
    read_part,
    read_setting,
    setting,
    whole_number,
)
from elmo_plugin.bilm.vocabulary_file import words_beside
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path

OPTIONS_FILE = "options.json"
#: The name of the buffer in which a `Bilm` stores its options and the name of their file.
STORED_OPTIONS = "options_json"

# Larger values are mistakes, see `whole_number`.
_MAX_LAYERS, _MAX_CHARACTERS = 1_000, 10_000


@dataclass(frozen=True)
class CharacterCnnOptions:
    """The character encoder of a biLM: the `char_cnn` part of an options file."""

    #: Width of each convolution and its number of filters, `((1, 32), (2, 32), …)`.
    filters: Tuple[Tuple[int, int], ...] = setting(FILTERS)
    #: Width of a character embedding.
    embedding_dim: int = setting(whole_number(), name="embedding.dim")
    #: Number of character ids: 262 for bytes. At least padding (id 0), 5 specials, the unknown and
    #: one character.
    n_characters: int = setting(whole_number(8, 10**7))
    #: Ids per word, the begin and end of the word included.
    max_characters_per_token: int = setting(whole_number(3, _MAX_CHARACTERS))
    #: `relu` or `tanh`, applied after the maximum over positions.
    activation: str = setting(one_of("relu", "tanh"))
    #: Number of highway layers, 0 for none.
    n_highway: int = setting(whole_number(0, _MAX_LAYERS), default=0)
    #: `byte`: characters are UTF-8 bytes, as in every published biLM; or `code_point`.
    character_unit: str = setting(one_of("byte", "code_point"), default="byte")
    #: Whether the features of a word are projected to the width of an LSTM layer's output. If
    #: false, they are used as the token layer, as in Kim et al. (2016).
    projection: bool = setting(BOOLEAN, default=True)

    @property
    def num_filters(self) -> int:
        """Number of features of a word before the projection."""
        return sum(number for _, number in self.filters)


@dataclass(frozen=True)
class LstmOptions:
    """The recurrent layers of a biLM: the `lstm` part of an options file."""

    #: Width of the cell state, per direction.
    dim: int = setting(whole_number())
    #: Width to which the hidden state is projected, per direction; `None` (or absent from the file)
    #: for no projection.
    projection_dim: Optional[int] = setting(whole_number(), default=None)
    #: Number of recurrent layers; the token layer does not count.
    n_layers: int = setting(whole_number(maximum=_MAX_LAYERS), default=1)
    #: Bounds on the cell state and on the projection; `None` (or 0 in the file) for no bound.
    #: `proj_clip` is `None` without a projection.
    cell_clip: Optional[float] = setting(BOUND, default=None)
    proj_clip: Optional[float] = setting(BOUND, default=None)
    #: Whether layers above the first add their input to their output.
    use_skip_connections: bool = setting(BOOLEAN)

    @property
    def output_dim(self) -> int:
        """Width of a layer's output, one direction."""
        return self.projection_dim or self.dim


@dataclass(frozen=True)
class BilmOptions:
    """The shape of a biLM, as in bilm-tf's `options.json`."""

    #: `None` for a biLM that reads token embeddings instead of characters.
    char_cnn: Optional[CharacterCnnOptions]
    lstm: LstmOptions
    #: The content of the whole file, including training settings.
    source: Dict[str, Any] = field(compare=False, repr=False)
    #: False for a forward-only language model.
    bidirectional: bool = True
    #: For token embeddings, the word of each row: `<S>`, `</S>`, `<UNK>`, then the others. `None`
    #: if they are not known yet, see `with_words`.
    words: Optional[Tuple[str, ...]] = field(default=None, repr=False)

    @property
    def num_layers(self) -> int:
        """Number of layers of the output, the token layer included: 3 for the published biLM."""
        return self.lstm.n_layers + 1

    @property
    def output_dim(self) -> int:
        """Width of every recurrent layer of the output, all directions together."""
        return (2 if self.bidirectional else 1) * self.lstm.output_dim

    @property
    def token_dim(self) -> int:
        """Width of the token layer, the input of both directions."""
        if self.char_cnn is None or self.char_cnn.projection:
            return self.lstm.output_dim
        return self.char_cnn.num_filters

    @classmethod
    def from_file(cls, options_file: Union[str, PathLike]) -> "BilmOptions":
        """
        Reads an options file, and for token embeddings the `vocabulary.txt` beside it. Raises
        `ConfigurationError` if one is missing or damaged, or a setting is missing or impossible.
        """
        try:
            with open(local_path(options_file), encoding="utf-8") as opened:
                source = json.load(opened)
        except (FileNotFoundError, IsADirectoryError) as error:
            found = "is a folder" if isinstance(error, IsADirectoryError) else "does not exist"
            raise ConfigurationError(
                f"biLM options file {options_file} {found}. Set `options_file` (or ELMO_OPTIONS) "
                "to the options.json of the biLM."
            ) from None
        except (ValueError, RecursionError) as error:
            raise ConfigurationError(
                f"biLM options file {options_file} is not JSON: {error}"
            ) from error
        options = cls.from_dict(source, str(options_file))
        if options.char_cnn is None and options.words is None:
            return options.with_words(words_beside(options_file), str(options_file))
        return options

    @classmethod
    def from_dict(cls, source: Dict[str, Any], location: str = "biLM options") -> "BilmOptions":
        """Reads the content of an options file. Its `ConfigurationError` begins with `location`."""
        cnn, words = None, None
        if isinstance(source, dict) and source.get("char_cnn") is not None:
            cnn = read_part(CharacterCnnOptions, source, "char_cnn", location)
            _check_characters(cnn, location)
        else:
            words = read_setting(source, "vocabulary", location, WORDS, None)
        lstm = read_part(LstmOptions, source, "lstm", location)
        if lstm.projection_dim is None:
            lstm = replace(lstm, proj_clip=None)
        if words is not None:
            expected = read_setting(
                source, "n_tokens_vocab", location, whole_number(1, 10**9), len(words)
            )
            if len(words) != expected:
                raise ConfigurationError(
                    f"{location}: expected {expected} words, which is `n_tokens_vocab`, found "
                    f"{len(words)}. Use the vocabulary with which the biLM was trained."
                )
        bidirectional = read_setting(source, "bidirectional", location, BOOLEAN, True)
        return cls(cnn, lstm, source, bidirectional, words)

    def with_words(self, words: Sequence[str], location: str = "biLM options") -> "BilmOptions":
        """The options with these words, also in `source`. Raises the errors of `from_dict`."""
        source = {"n_tokens_vocab": len(words), **self.source, "vocabulary": list(words)}
        return self.from_dict(source, location)

    def to_json(self, **changes: Any) -> str:
        """The text of an options file, with `changes`. Words belong in `vocabulary.txt`."""
        # Defaults are written too, because AllenNLP or bilm-tf have others.
        lstm = {**self.source["lstm"], **asdict(self.lstm)}
        written = {**self.source, "bidirectional": self.bidirectional, "lstm": lstm, **changes}
        if self.char_cnn is None:
            written.pop("vocabulary", None)
        else:
            cnn = {"activation": self.char_cnn.activation, "n_highway": self.char_cnn.n_highway}
            written["char_cnn"] = {**self.source["char_cnn"], **cnn}
        return json.dumps(written, indent=4, ensure_ascii=False) + "\n"

    def difference(self, other: "BilmOptions") -> str:
        """Describes the first setting in which `other` differs, by its name in the file."""
        for name in ("bidirectional", "char_cnn", "lstm"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                if is_dataclass(ours) and is_dataclass(theirs):
                    part = next(k for k in vars(ours) if vars(ours)[k] != vars(theirs)[k])
                    name, ours, theirs = f"{name}.{part}", vars(ours)[part], vars(theirs)[part]
                return f"expected `{name}` {ours!r}, found {theirs!r}"
        num_words = [len(options.words or ()) for options in (self, other)]
        return "expected a `vocabulary` of {} words, found {} others".format(*num_words)

    def check_widths(self, location: str = "biLM") -> None:
        """Raises `ConfigurationError` if the token layer and the LSTM layers differ in width."""
        expected, found = self.lstm.output_dim, self.token_dim
        if found != expected:
            raise ConfigurationError(
                f"{location}: ELMo mixes layers of one width; expected a token layer as wide as "
                f"an LSTM layer's output ({expected}), found {found}. Without "
                f"`char_cnn.projection`, `char_cnn.filters` must add up to {expected}."
            )


def _check_characters(cnn: CharacterCnnOptions, location: str) -> None:
    """Raises `ConfigurationError` if the settings of characters do not fit each other."""
    found, longest = cnn.n_characters, cnn.max_characters_per_token
    problem = ""
    if max(width for width, _ in cnn.filters) > longest:
        problem = (
            f"`char_cnn.filters` with widths up to `max_characters_per_token` ({longest}), found "
            f"{list(cnn.filters)}."
        )
    if cnn.character_unit == "byte" and found != 262:
        problem = (
            f"`char_cnn.n_characters` 262, found {found}: 256 bytes, 5 specials and padding. "
            "bilm-tf trains with 261, without padding; write 262, the weights do not change."
        )
    if problem:
        raise ConfigurationError(f"{location}: expected {problem}")


def encode_stored_options(options: Dict[str, Any], options_file: str) -> torch.Tensor:
    """Encodes the content and the name of an options file as JSON, see `encode_bytes`."""
    text = json.dumps({"options_file": options_file, "options": options}, sort_keys=True)
    return encode_bytes(text.encode())


def decode_stored_options(stored: torch.Tensor) -> Dict[str, Any]:
    """Returns `options` and `options_file`. Raises `ConfigurationError` for other numbers."""
    try:
        content = json.loads(decode_bytes(stored))
    except ValueError as error:
        raise ConfigurationError(
            f"Expected the options of a biLM as JSON in the parameter {STORED_OPTIONS}, found "
            "other numbers. Leave them as they are when you change the weights of a model."
        ) from error
    # Defaults of the versions that wrote archives without these two.
    content["options"]["lstm"].setdefault("use_skip_connections", False)
    if content["options"].get("char_cnn"):
        content["options"]["char_cnn"].setdefault("activation", "tanh")
    return content


def encode_bytes(content: bytes) -> torch.Tensor:
    """Bytes as floats, which stay the same when users convert or average whole state dicts."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8).float()


def decode_bytes(values: torch.Tensor) -> bytes:
    """Reverts `encode_bytes`, whatever the type is now; older archives have uint8."""
    return bytes(values.cpu().float().round().to(torch.uint8).numpy())
