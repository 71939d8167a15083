import json
from dataclasses import asdict, dataclass, field, is_dataclass
from os import PathLike
from typing import Any, Dict, Optional, Sequence, Tuple, Union

from elmo_plugin.bilm.character_cnn_options import (
    MAX_LAYERS,
    CharacterCnnOptions,
    character_cnn_options,
)
from elmo_plugin.bilm.settings_reader import BOOLEAN, BOUND, WORDS, SettingsReader, whole_number
from elmo_plugin.bilm.vocabulary_file import words_beside
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path

OPTIONS_FILE = "options.json"

# Building a larger model would use all RAM before it failed. The largest published model, that of
# Jozefowicz et al. (2016), has a billion parameters.
MAX_PARAMETERS = 10**10


@dataclass(frozen=True)
class LstmOptions:
    """The recurrent layers of a biLM: the `lstm` part of an options file."""

    #: Width of the cell state, per direction.
    dim: int
    #: Width to which the hidden state is projected, per direction; `None` (or absent from the file)
    #: for no projection.
    projection_dim: Optional[int]
    #: Number of recurrent layers; the token layer does not count.
    n_layers: int
    #: Bounds on the cell state and on the projection; `None` (or 0 in the file) for no bound.
    #: `proj_clip` is `None` without a projection.
    cell_clip: Optional[float]
    proj_clip: Optional[float]
    #: Whether layers above the first add their input to their output.
    use_skip_connections: bool

    @property
    def output_dim(self) -> int:
        """Width of a layer's output, one direction."""
        return self.projection_dim or self.dim


@dataclass(frozen=True)
class BilmOptions:
    """
    The shape of a biLM, as in bilm-tf's `options.json`.

    # Parameters

    char_cnn : `Optional[CharacterCnnOptions]`
        `None` for a biLM that reads token embeddings instead of characters.
    lstm : `LstmOptions`
    source : `Dict[str, Any]`
        The content of the whole file, including training settings.
    bidirectional : `bool`
        False for a forward-only language model.
    words : `Optional[Tuple[str, ...]]`
        For token embeddings, the word of each row: `<S>`, `</S>`, `<UNK>`, then the others. `None`
        if they are not known yet, see `with_words`.
    """

    char_cnn: Optional[CharacterCnnOptions]
    lstm: LstmOptions
    source: Dict[str, Any] = field(compare=False, repr=False)
    bidirectional: bool = True
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

    @property
    def num_parameters(self) -> int:
        """Number of parameters of the biLM, without a softmax."""
        lstm, dim = self.lstm, self.lstm.output_dim
        per_input = 4 * lstm.dim
        layer = (dim + 1) * per_input + (lstm.projection_dim or 0) * lstm.dim
        stack = lstm.n_layers * layer + (self.token_dim + (lstm.n_layers - 1) * dim) * per_input
        if self.char_cnn is None:
            # A row for padding too.
            encoder = (len(self.words or ()) + 1) * dim
        else:
            encoder = self.char_cnn.num_parameters(dim)
        return encoder + (2 if self.bidirectional else 1) * stack

    @classmethod
    def from_file(cls, options_file: Union[str, PathLike]) -> "BilmOptions":
        """
        # Raises

        `ConfigurationError`
            If there is no such file, if it is not JSON, or if a setting is missing or impossible;
            for token embeddings, if there is no `vocabulary.txt` beside the file.
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
        """
        # Parameters

        source : `Dict[str, Any]`
            The content of an options file.
        location : `str`
            Its name in error messages.

        # Raises

        `ConfigurationError`
            If a setting is missing or impossible.
        """
        read = SettingsReader(source, location)
        has_characters = isinstance(source, dict) and source.get("char_cnn") is not None
        options = cls(
            char_cnn=character_cnn_options(read) if has_characters else None,
            lstm=_lstm_options(read),
            source=source,
            bidirectional=read("bidirectional", BOOLEAN, default=True),
            words=None if has_characters else _words(read),
        )
        if options.num_parameters > MAX_PARAMETERS:
            raise ConfigurationError(
                f"{location}: expected a biLM of at most {MAX_PARAMETERS:,} parameters, found "
                f"{options.num_parameters:,}. No biLM is that large; correct the widths in "
                "`char_cnn` and `lstm`."
            )
        return options

    def with_words(self, words: Sequence[str], location: str = "biLM options") -> "BilmOptions":
        """
        The same options with token embeddings of these words, which become part of `source`.
        Raises `ConfigurationError` if `n_tokens_vocab` is not their number.
        """
        source = {"n_tokens_vocab": len(words), **self.source, "vocabulary": list(words)}
        return self.from_dict(source, location)

    def to_json(self, **changes: Any) -> str:
        """
        The text of an options file. Settings with another default in AllenNLP or bilm-tf are always
        written; `vocabulary` is not: the words of token embeddings belong in `vocabulary.txt`.
        """
        lstm = {**self.source["lstm"], **asdict(self.lstm)}
        written = {**self.source, "bidirectional": self.bidirectional, "lstm": lstm, **changes}
        if self.char_cnn is None:
            written.pop("vocabulary", None)
        else:
            cnn = {"activation": self.char_cnn.activation, "n_highway": self.char_cnn.n_highway}
            written["char_cnn"] = {**self.source["char_cnn"], **cnn}
        return json.dumps(written, indent=4, ensure_ascii=False) + "\n"

    def difference(self, other: "BilmOptions") -> str:
        """The first setting in which other options differ, by its name in the file."""
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


def _lstm_options(read: SettingsReader) -> LstmOptions:
    projection_dim = read("lstm.projection_dim", whole_number(), default=None)
    # 0 stands for no bound.
    proj_clip = read("lstm.proj_clip", BOUND, default=None) or None
    return LstmOptions(
        dim=read("lstm.dim", whole_number()),
        projection_dim=projection_dim,
        n_layers=read("lstm.n_layers", whole_number(maximum=MAX_LAYERS), default=1),
        cell_clip=read("lstm.cell_clip", BOUND, default=None) or None,
        proj_clip=None if projection_dim is None else proj_clip,
        use_skip_connections=read("lstm.use_skip_connections", BOOLEAN),
    )


def _words(read: SettingsReader) -> Optional[Tuple[str, ...]]:
    words = read("vocabulary", WORDS, default=None)
    if words is None:
        return None
    expected = read("n_tokens_vocab", whole_number(), default=len(words))
    if len(words) != expected:
        raise ConfigurationError(
            f"{read.location}: expected {expected} words, which is `n_tokens_vocab`, found "
            f"{len(words)}. Use the vocabulary with which the biLM was trained."
        )
    return tuple(words)
