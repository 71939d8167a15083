import json
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Dict, Optional, Sequence, Tuple, Union

from elmo_plugin.bilm.settings_reader import SettingsReader
from elmo_plugin.bilm.vocabulary_file import words_beside
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path

# A larger value is a mistake, and building such a model would take all memory before it failed. The
# largest published one, of Jozefowicz et al. (2016), has two layers and a billion parameters.
MOST_LAYERS = 1_000
MOST_CHARACTERS = 10_000
MOST_PARAMETERS = 10**10

CHARACTER_UNITS = ("byte", "code_point")
ACTIVATIONS = ("relu", "tanh")


@dataclass(frozen=True)
class CharacterCnnOptions:
    """
    The character encoder of a biLM: the `char_cnn` part of an options file.

    # Parameters

    filters : `Tuple[Tuple[int, int], ...]`
        Width and number of the convolutions, `((1, 32), (2, 32), …)`.
    embedding_dim : `int`
        Width of a character embedding.
    n_characters : `int`
        Number of character ids, padding (id 0) included: 262 for bytes.
    max_characters_per_token : `int`
        Ids per word, the begin and end of the word included.
    activation : `str`
        `relu` or `tanh`, applied after the maximum over positions.
    n_highway : `int`
        Number of highway layers, 0 for none.
    character_unit : `str`
        What one character is: a UTF-8 `byte`, as in every published biLM, or a `code_point`.
    projection : `bool`
        Whether the features of a word are projected to the width of an LSTM layer's output. When
        false they are the token layer themselves, as in Kim et al. (2016).
    """

    filters: Tuple[Tuple[int, int], ...]
    embedding_dim: int
    n_characters: int
    max_characters_per_token: int
    activation: str
    n_highway: int
    character_unit: str = "byte"
    projection: bool = True

    @property
    def num_filters(self) -> int:
        """Number of features of a word before the projection."""
        return sum(number for _, number in self.filters)

    def num_parameters(self, output_dim: int) -> int:
        """Number of parameters of an encoder that projects, if it does, to `output_dim`."""
        dim = self.num_filters
        convolutions = sum((width * self.embedding_dim + 1) * n for width, n in self.filters)
        highways = self.n_highway * 2 * (dim + 1) * dim
        projection = (dim + 1) * output_dim if self.projection else 0
        return self.n_characters * self.embedding_dim + convolutions + highways + projection


@dataclass(frozen=True)
class LstmOptions:
    """
    The recurrent layers of a biLM: the `lstm` part of an options file.

    # Parameters

    dim : `int`
        Number of LSTM cells per direction.
    projection_dim : `Optional[int]`
        Width to which the cells are projected, per direction; `None` (or absent from the file)
        when they are a layer's output themselves.
    n_layers : `int`
        Number of recurrent layers; the token layer does not count.
    cell_clip, proj_clip : `Optional[float]`
        Bounds on the cell and on its projection; `None` (or 0 in the file) for no bound, and
        always `None` for a projection that is not there.
    use_skip_connections : `bool`
        Whether layers above the first add their input to their output.
    """

    dim: int
    projection_dim: Optional[int]
    n_layers: int
    cell_clip: Optional[float]
    proj_clip: Optional[float]
    use_skip_connections: bool

    @property
    def output_dim(self) -> int:
        """Width of a layer's output, one direction."""
        return self.projection_dim or self.dim


@dataclass(frozen=True)
class BilmOptions:
    """
    Everything that decides the shape of a biLM, read from bilm-tf's `options.json`.

    # Parameters

    char_cnn : `Optional[CharacterCnnOptions]`
        `None` for a biLM that reads token embeddings instead of characters.
    lstm : `LstmOptions`
    source : `Dict[str, Any]`
        The whole file, training settings included, so that it can be written back.
    bidirectional : `bool`
        False for a language model that reads forward only.
    words : `Optional[Tuple[str, ...]]`
        Of token embeddings: the word of each row, `<S>`, `</S>` and `<UNK>` first. `None` before
        they are known, see `with_words`.
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
        """Width of every recurrent layer of the output, its directions together."""
        return (2 if self.bidirectional else 1) * self.lstm.output_dim

    @property
    def token_dim(self) -> int:
        """Width of the token layer, which both directions read."""
        if self.char_cnn is None or self.char_cnn.projection:
            return self.lstm.output_dim
        return self.char_cnn.num_filters

    @property
    def num_parameters(self) -> int:
        """Number of parameters of a biLM of these options, without a softmax."""
        lstm, dim = self.lstm, self.lstm.output_dim
        per_input = 4 * lstm.dim
        layer = (dim + 1) * per_input + (lstm.projection_dim or 0) * lstm.dim
        stack = lstm.n_layers * layer + (self.token_dim + (lstm.n_layers - 1) * dim) * per_input
        if self.char_cnn is None:
            encoder = len(self.words or ()) * dim
        else:
            encoder = self.char_cnn.num_parameters(dim)
        return encoder + (2 if self.bidirectional else 1) * stack

    @classmethod
    def from_file(cls, options_file: Union[str, PathLike]) -> "BilmOptions":
        """
        # Raises

        `ConfigurationError`
            If there is no such file, if it is not JSON, or if a setting is missing or impossible.
            If it asks for token embeddings and their words do not stand in `vocabulary.txt` beside
            it.
        """
        try:
            with open(local_path(options_file), encoding="utf-8") as opened:
                source = json.load(opened)
        except FileNotFoundError:
            raise ConfigurationError(
                f"biLM options file {options_file} does not exist. Set `options_file` (or "
                "ELMO_OPTIONS) to the options.json of the biLM."
            ) from None
        except IsADirectoryError:
            raise ConfigurationError(
                f"biLM options file {options_file} is a folder. Set `options_file` (or "
                "ELMO_OPTIONS) to the options.json of the biLM."
            ) from None
        except ValueError as error:
            raise ConfigurationError(
                f"biLM options file {options_file} is not JSON: {error}"
            ) from error
        options = cls.from_dict(source, str(options_file))
        if options.char_cnn is None and options.words is None:
            return options.with_words(words_beside(options_file), str(options_file))
        return options

    @classmethod
    def from_dict(cls, source: Dict[str, Any], place: str = "biLM options") -> "BilmOptions":
        """
        # Parameters

        source : `Dict[str, Any]`
            The content of an options file.
        place : `str`
            What error messages call it.

        # Raises

        `ConfigurationError`
            If a setting is missing or impossible.
        """
        read = SettingsReader(source, place)
        reads_characters = read("char_cnn", default=None) is not None
        options = cls(
            char_cnn=_character_cnn_options(read) if reads_characters else None,
            lstm=_lstm_options(read),
            source=source,
            bidirectional=read.boolean("bidirectional", default=True),
            words=None if reads_characters else read.words("vocabulary"),
        )
        if options.num_parameters > MOST_PARAMETERS:
            raise ConfigurationError(
                f"{place}: expected a biLM of at most {MOST_PARAMETERS:,} parameters, found "
                f"{options.num_parameters:,}. No biLM is that large; correct the widths in "
                "`char_cnn` and `lstm`."
            )
        return options

    def with_words(self, words: Sequence[str], place: str = "biLM options") -> "BilmOptions":
        """
        The same for token embeddings of these words. They become part of `source`, so that whatever
        keeps the options keeps them.

        # Raises

        `ConfigurationError`
            If the options speak of another number of words.
        """
        source = {"n_tokens_vocab": len(words), **self.source, "vocabulary": list(words)}
        return self.from_dict(source, place)


def _lstm_options(read: SettingsReader) -> LstmOptions:
    projects = read("lstm.projection_dim", default=None) is not None
    proj_clip = read.bound("lstm.proj_clip")
    return LstmOptions(
        dim=read.whole("lstm.dim"),
        projection_dim=read.whole("lstm.projection_dim") if projects else None,
        n_layers=read.whole("lstm.n_layers", most=MOST_LAYERS, default=1),
        cell_clip=read.bound("lstm.cell_clip"),
        proj_clip=proj_clip if projects else None,
        use_skip_connections=read.boolean("lstm.use_skip_connections", default=False),
    )


def _character_cnn_options(read: SettingsReader) -> CharacterCnnOptions:
    name = "char_cnn.max_characters_per_token"
    filters = read.filters("char_cnn.filters")
    options = CharacterCnnOptions(
        filters=filters,
        embedding_dim=read.whole("char_cnn.embedding.dim"),
        n_characters=read.whole("char_cnn.n_characters"),
        max_characters_per_token=read.whole(name, most=MOST_CHARACTERS),
        activation=read.one_of("char_cnn.activation", ACTIVATIONS, default="tanh"),
        n_highway=read.whole("char_cnn.n_highway", least=0, most=MOST_LAYERS, default=0),
        character_unit=read.one_of("char_cnn.character_unit", CHARACTER_UNITS, default="byte"),
        projection=read.boolean("char_cnn.projection", default=True),
    )
    if options.character_unit == "byte" and options.n_characters != 262:
        hint = (
            "261 is the count bilm-tf trains with; a biLM that is read needs one more, for "
            "padding. Write 262 into the file; the weights stay as they are."
            if options.n_characters == 261
            else "256 bytes, 5 specials and padding make 262."
        )
        raise ConfigurationError(
            f"{read.place}: expected `char_cnn.n_characters` 262, found "
            f"{options.n_characters}. {hint}"
        )
    if options.max_characters_per_token < 3:
        raise ConfigurationError(
            f"{read.place}: expected `char_cnn.max_characters_per_token` of at least 3 (a "
            f"character and the marks around a word), found {options.max_characters_per_token}."
        )
    if options.n_characters < 8:
        raise ConfigurationError(
            f"{read.place}: expected `char_cnn.n_characters` of at least 8 (a character, 5 "
            f"specials, the unknown and padding), found {options.n_characters}."
        )
    if max(width for width, _ in filters) > options.max_characters_per_token:
        raise ConfigurationError(
            f"{read.place}: `char_cnn.filters` {list(filters)} must be a list of [width, number] "
            f"with widths up to `max_characters_per_token` ({options.max_characters_per_token})."
        )
    return options
