"""The shape of a biLM, read from bilm-tf's `options.json`; errors name setting and file."""

import json
import math
import os
from dataclasses import MISSING, asdict, dataclass, field, fields, is_dataclass, replace
from os import PathLike
from typing import Any, Callable, Dict, NamedTuple, Optional, Sequence, Tuple, Type, TypeVar, Union

from elmo_plugin.bilm.vocabulary_file import SPECIALS, VOCABULARY_FILE, read_vocabulary
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path

OPTIONS_FILE = "options.json"
#: What the tables of `CharacterTableOptions` must contain.
CHARACTER_SPECIALS = ("<bos>", "<eos>", "<bow>", "<eow>", "<pad>", "<oov>")
WORD_SPECIALS = ("<oov>",)

Part = TypeVar("Part")


class Values(NamedTuple):
    """The values that a setting may have: described in messages, tested, and converted."""

    description: str
    accepts: Callable[[Any], bool]
    convert: Callable[[Any], Any] = lambda value: value


def whole_number(minimum: int = 1, maximum: int = 1_000_000) -> Values:
    """A whole number within bounds. A larger one is a mistake that could use up all RAM."""
    return Values(
        f"a whole number of at least {minimum} and at most {maximum:,}",
        # Not `isinstance`, by which true is an `int`.
        lambda value: type(value) is int and minimum <= value <= maximum,
    )


def _is_filters(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and all(isinstance(pair, (list, tuple)) and len(pair) == 2 for pair in value)
        and all(whole_number().accepts(number) for pair in value for number in pair)
    )


BOOLEAN = Values("true or false", lambda value: isinstance(value, bool))
# 0 stands for no bound.
BOUND = Values(
    "a number not below 0",
    lambda value: type(value) in (int, float) and 0 <= value < math.inf,
    lambda value: value or None,
)
ACTIVATION = Values("relu or tanh", lambda value: value in ("relu", "tanh"))
FILTERS = Values(
    "a list of [width, number] pairs of whole numbers above 0",
    lambda value: _is_filters(value) and len(value) > 0,
    lambda value: tuple((width, number) for width, number in value),
)


def setting(values: Values, default: Any = MISSING, name: str = "", hide: bool = False) -> Any:
    """A field of a dataclass. `name` is its name in the JSON, if it is another one."""
    return field(default=default, repr=not hide, metadata={"values": values, "name": name})


def read_part(part: Type[Part], source: Any, name: str, location: str) -> Part:
    """Reads a dataclass of `setting` fields from the JSON below `name`."""
    values = {
        each.name: read_setting(
            source,
            f"{name}.{each.metadata['name'] or each.name}",
            location,
            each.metadata["values"],
            each.default,
        )
        for each in fields(part)  # type: ignore[arg-type]
    }
    return part(**values)


def read_setting(
    source: Any,
    name: str,
    location: str,
    values: Values,
    default: Any = MISSING,
) -> Any:
    """The value of a dotted name, or `default` if missing or null. Errors begin with `location`."""
    value = source
    for part in name.split("."):
        value = value.get(part, MISSING) if isinstance(value, dict) else MISSING
    if default is not MISSING and (value is MISSING or value is None):
        return default
    if value is MISSING:
        raise ConfigurationError(
            f"{location}: `{name}` is missing; expected {values.description}, as in the file with "
            "which the biLM was trained."
        )
    if not values.accepts(value):
        raise ConfigurationError(
            f"{location}: expected {values.description} for `{name}`, found {value!r:.80}."
        )
    return values.convert(value)


_NUM_CHARACTERS = Values(
    "262 (bilm-tf trains with 261, without padding: write 262, the weights do not change)",
    lambda value: type(value) is int and value == 262,
)
_UNIT = Values("table or byte", lambda value: value in ("table", "byte"))


def _different(what: str, *needed: str) -> Values:
    """A list of different strings that contains those that are needed."""
    return Values(
        f"a list of different {what} with {', '.join(needed)} among them",
        lambda value: (
            isinstance(value, list)
            and all(isinstance(each, str) for each in value)
            and len({*value}) == len({*value, *needed}) == len(value)
        ),
        tuple,
    )


_WORDS = _different("words", *SPECIALS)


def read_source(options_file: Union[str, PathLike]) -> Any:
    """The JSON of an options file. Raises `ConfigurationError` if it is missing or damaged."""
    try:
        with open(local_path(options_file), encoding="utf-8") as opened:
            return json.load(opened)
    except FileNotFoundError:
        raise ConfigurationError(
            f"biLM options file {options_file} does not exist. Set `options_file` (or "
            "ELMO_OPTIONS) to the options.json of the biLM."
        ) from None
    except (IsADirectoryError, ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"biLM options file {options_file} is not JSON: {error}"
        ) from error


@dataclass(frozen=True, kw_only=True)
class CharacterCnnOptions:
    """The character encoder of a biLM: the `char_cnn` part of an options file."""

    #: Width of each convolution and its number of filters, `((1, 32), (2, 32), …)`.
    filters: Tuple[Tuple[int, int], ...] = setting(FILTERS)
    #: Width of a character embedding.
    embedding_dim: int = setting(whole_number(), name="embedding.dim")
    #: Number of character ids: 256 bytes, 5 specials and padding (id 0).
    n_characters: int = setting(_NUM_CHARACTERS)
    #: Ids per word, the begin and end of the word included.
    max_characters_per_token: int = setting(whole_number(3, 10_000))
    #: `relu` or `tanh`, applied after the maximum over positions.
    activation: str = setting(ACTIVATION)
    #: Number of highway layers, 0 for none.
    n_highway: int = setting(whole_number(0, 1_000), default=0)
    #: `byte`: characters are UTF-8 bytes, as in the published biLMs of bilm-tf; or `table`, see
    #: `CharacterTableOptions`.
    character_unit: str = setting(_UNIT, default="byte")
    #: Whether the features of a word are projected to the width of an LSTM layer's output. If
    #: false, they are used as the token layer, as in Kim et al. (2016).
    projection: bool = setting(BOOLEAN, default=True)

    @property
    def num_filters(self) -> int:
        """Number of features of a word from its characters."""
        return sum(number for _, number in self.filters)

    @property
    def num_features(self) -> int:
        """Number of features of a word before the projection."""
        return self.num_filters

    def problem(self) -> str:
        """What is expected and found, if settings contradict each other; else an empty string."""
        longest = self.max_characters_per_token
        if max((width for width, _ in self.filters), default=0) <= longest:
            return ""
        return (
            f"`char_cnn.filters` with widths up to `max_characters_per_token` ({longest}), found "
            f"{list(self.filters)}"
        )


@dataclass(frozen=True, kw_only=True)
class CharacterTableOptions(CharacterCnnOptions):
    """
    A character encoder that reads a table of Unicode characters, as ELMoForManyLangs does, and may
    join the features of a word with the word's embedding before the projection. Without
    `characters` and `filters` it reads words alone.
    """

    #: The character of each id from 1, with the special ones.
    characters: Tuple[str, ...] = setting(
        _different("characters", *CHARACTER_SPECIALS),
        (),
        hide=True,
    )
    #: The word of each id from 1. Others are read as `<oov>`.
    words: Tuple[str, ...] = setting(_different("words", *WORD_SPECIALS), (), hide=True)
    #: Width of a word embedding.
    word_dim: int = setting(whole_number(), default=0)
    n_characters: int = setting(whole_number())
    # `<bos>` is not cut.
    max_characters_per_token: int = setting(whole_number(7, 10_000))
    filters: Tuple[Tuple[int, int], ...] = setting(FILTERS, ())

    @property
    def num_features(self) -> int:
        return self.num_filters + self.word_dim

    def problem(self) -> str:
        if bool(self.characters) != bool(self.filters):
            return "`char_cnn.filters` with `characters`, found one alone"
        return super().problem()


@dataclass(frozen=True, kw_only=True)
class LstmOptions:
    """The recurrent layers of a biLM: the `lstm` part of an options file."""

    #: Width of the cell state, per direction.
    dim: int = setting(whole_number())
    #: Width to which the hidden state is projected, per direction; `None` (or absent from the file)
    #: for no projection.
    projection_dim: Optional[int] = setting(whole_number(), default=None)
    #: Number of recurrent layers; the token layer does not count.
    n_layers: int = setting(whole_number(maximum=1_000), default=1)
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
        return self.char_cnn.num_features

    @classmethod
    def from_file(cls, options_file: Union[str, PathLike]) -> "BilmOptions":
        """
        Reads an options file, and for token embeddings the `vocabulary.txt` beside it. Raises
        `ConfigurationError` if one is missing or damaged, or a setting is missing or impossible.
        """
        source = read_source(options_file)
        options = cls.from_dict(source, str(options_file))
        if options.char_cnn is None and options.words is None:
            file = os.path.join(os.path.dirname(options_file), VOCABULARY_FILE)
            words = [word for word, _ in read_vocabulary(file)]
            return options.with_words(words, str(options_file))
        return options

    @classmethod
    def from_dict(cls, source: Dict[str, Any], location: str = "biLM options") -> "BilmOptions":
        """Reads the content of an options file. Its `ConfigurationError` begins with `location`."""
        cnn, words = None, None
        if isinstance(source, dict) and source.get("char_cnn") is not None:
            unit = read_setting(source, "char_cnn.character_unit", location, _UNIT, "byte")
            part = CharacterTableOptions if unit == "table" else CharacterCnnOptions
            cnn = read_part(part, source, "char_cnn", location)
            if problem := cnn.problem():
                raise ConfigurationError(f"{location}: expected {problem}.")
        else:
            words = read_setting(source, "vocabulary", location, _WORDS, None)
        lstm = read_part(LstmOptions, source, "lstm", location)
        if lstm.projection_dim is None:
            lstm = replace(lstm, proj_clip=None)
        bidirectional = read_setting(source, "bidirectional", location, BOOLEAN, True)
        return cls(cnn, lstm, source, bidirectional, words)

    def with_words(self, words: Sequence[str], location: str = "biLM options") -> "BilmOptions":
        """The options with these words, also in `source`. Raises the errors of `from_dict`."""
        source = {**self.source, "n_tokens_vocab": len(words), "vocabulary": list(words)}
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
                return f"expected `{name}` {ours!r:.80}, found {theirs!r:.80}"
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
