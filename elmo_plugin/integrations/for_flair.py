from os import PathLike
from typing import Any, Dict, List, Optional, Union

from elmo_plugin.bilm import Bilm, BilmOptions, fingerprint, load_bilm
from elmo_plugin.elmo.elmo import chosen_layers
from elmo_plugin.elmo.embed import embed_sentences
from elmo_plugin.util.errors import optional_package

optional_package("flair", "ElmoEmbeddings")
import flair  # noqa: E402
from flair.data import Sentence  # noqa: E402
from flair.embeddings.base import TokenEmbeddings, register_embeddings  # noqa: E402


@register_embeddings
class ElmoEmbeddings(TokenEmbeddings):
    """
    ELMo in flair: each token gets the mean of `layers` of a frozen biLM. `layers` are `all`,
    `last`, or numbers; 0 is the token layer. To concatenate layers, stack one `ElmoEmbeddings` for
    each in a `StackedEmbeddings`. `bilm`, or what `load_bilm` opens, by default its default biLM,
    is saved with a flair model.

    Tokens keep their vectors under `name`. flair reuses vectors of the same name, so the default
    name is made of all that they depend on.
    """

    def __init__(
        self,
        bilm: Union[Bilm, str, PathLike, None] = None,
        layers: Union[str, List[int]] = "all",
        name: Optional[str] = None,
    ) -> None:
        bilm = (bilm if isinstance(bilm, Bilm) else load_bilm(bilm)).requires_grad_(False)
        context = "-warm-up" if bilm.warm_up else ""
        self.name = name or f"elmo-{layers}-{fingerprint(bilm)[:8]}{context}"
        self.static_embeddings = True
        super().__init__()
        self.bilm = bilm
        self._setting = layers
        self._layers = chosen_layers(layers, self.bilm.num_layers)
        self.to(flair.device)
        self.eval()

    @property
    def embedding_length(self) -> int:
        return self.bilm.output_dim

    def _add_embeddings_internal(self, sentences: List[Sentence]) -> None:
        words = ([token.text for token in sentence] for sentence in sentences)
        for sentence, layers in zip(sentences, embed_sentences(self.bilm, words)):
            # Shape: (num_tokens, dim)
            vectors = layers[self._layers].float().mean(dim=0).to(flair.device)
            for token, vector in zip(sentence, vectors):
                token.set_embedding(self.name, vector)

    def to_params(self) -> Dict[str, Any]:
        return {
            "options": self.bilm.options.source,
            "layers": self._setting,
            "warm_up": self.bilm.warm_up,
            # flair numbers the parts of a stack in their names, and sorts vectors by name.
            "name": self.name,
        }

    @classmethod
    def from_params(cls, params: Dict[str, Any]) -> "ElmoEmbeddings":
        """Builds from `to_params`. flair loads the weights afterwards."""
        options, warm_up = BilmOptions.from_dict(params["options"]), params.get("warm_up", False)
        bilm = Bilm(options, warm_up=warm_up).eval()
        return cls(bilm, params["layers"], params.get("name"))
