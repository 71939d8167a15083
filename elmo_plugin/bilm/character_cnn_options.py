from dataclasses import dataclass
from typing import Tuple

from elmo_plugin.bilm.settings_reader import BOOLEAN, FILTERS, SettingsReader, one_of, whole_number
from elmo_plugin.util.errors import ConfigurationError

# Larger values are mistakes, and building such a model would use all RAM before it failed.
MAX_LAYERS = 1_000
MAX_CHARACTERS = 10_000


@dataclass(frozen=True)
class CharacterCnnOptions:
    """The character encoder of a biLM: the `char_cnn` part of an options file."""

    #: Width of each convolution and its number of filters, `((1, 32), (2, 32), …)`.
    filters: Tuple[Tuple[int, int], ...]
    #: Width of a character embedding.
    embedding_dim: int
    #: Number of character ids, padding (id 0) included: 262 for bytes.
    n_characters: int
    #: Ids per word, the begin and end of the word included.
    max_characters_per_token: int
    #: `relu` or `tanh`, applied after the maximum over positions.
    activation: str
    #: Number of highway layers, 0 for none.
    n_highway: int
    #: `byte`: characters are UTF-8 bytes, as in every published biLM; or `code_point`.
    character_unit: str = "byte"
    #: Whether the features of a word are projected to the width of an LSTM layer's output. If
    #: false, they are used as the token layer, as in Kim et al. (2016).
    projection: bool = True

    @property
    def num_filters(self) -> int:
        """Number of features of a word before the projection."""
        return sum(number for _, number in self.filters)

    def num_parameters(self, output_dim: int) -> int:
        """Number of parameters of the encoder; its projection, if any, is to `output_dim`."""
        dim = self.num_filters
        convolutions = sum((width * self.embedding_dim + 1) * n for width, n in self.filters)
        highways = self.n_highway * 2 * (dim + 1) * dim
        projection = (dim + 1) * output_dim if self.projection else 0
        return self.n_characters * self.embedding_dim + convolutions + highways + projection


def character_cnn_options(read: SettingsReader) -> CharacterCnnOptions:
    """Reads the settings below `char_cnn`."""
    n_characters = read("char_cnn.n_characters", whole_number())
    longest = read("char_cnn.max_characters_per_token", whole_number(maximum=MAX_CHARACTERS))
    options = CharacterCnnOptions(
        filters=tuple((width, n) for width, n in read("char_cnn.filters", FILTERS)),
        embedding_dim=read("char_cnn.embedding.dim", whole_number()),
        n_characters=n_characters,
        max_characters_per_token=longest,
        activation=read("char_cnn.activation", one_of("relu", "tanh")),
        n_highway=read("char_cnn.n_highway", whole_number(0, MAX_LAYERS), default=0),
        character_unit=read(
            "char_cnn.character_unit", one_of("byte", "code_point"), default="byte"
        ),
        projection=read("char_cnn.projection", BOOLEAN, default=True),
    )
    problem = None
    if options.character_unit == "byte" and n_characters != 262:
        hint = "256 bytes, 5 specials and padding make 262."
        if n_characters == 261:
            hint = "bilm-tf trains with 261, without padding. Write 262; the weights do not change."
        problem = f"`char_cnn.n_characters` 262, found {n_characters}. {hint}"
    elif longest < 3:
        problem = (
            "`char_cnn.max_characters_per_token` of at least 3 (a character, the begin and the end "
            f"of the word), found {longest}."
        )
    elif n_characters < 8:
        problem = (
            "`char_cnn.n_characters` of at least 8 (a character, 5 specials, the unknown and "
            f"padding), found {n_characters}."
        )
    elif max(width for width, _ in options.filters) > longest:
        problem = (
            f"`char_cnn.filters` with widths up to `max_characters_per_token` ({longest}), found "
            f"{list(options.filters)}."
        )
    if problem is not None:
        raise ConfigurationError(f"{read.location}: expected {problem}")
    return options
