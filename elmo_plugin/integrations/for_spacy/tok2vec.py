from functools import partial
from pathlib import Path
from typing import Any, Callable, List, Optional, Sequence, Tuple, cast

import torch
from spacy.tokens import Doc
from spacy.util import registry
from thinc.api import Model, Optimizer, PyTorchShim, torch2xp, xp2torch
from thinc.types import Floats1d, Floats2d
from thinc.util import get_torch_default_device

from elmo_plugin.bilm.files.folders import CONFIG_FILE, SAFETENSORS_FILE
from elmo_plugin.elmo.elmo import Elmo
from elmo_plugin.elmo.token_batches import map_in_batches
from elmo_plugin.integrations.for_spacy.pipes import folder_of_bytes, folder_to_bytes, sentences_of
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.weights import read_state, save_atomically

_MIX_FILE = "mix.th"
# Maximum number of sentences in a batch outside training; see also `token_batches`.
_BATCH_SIZE = 64


@registry.architectures("elmo.Tok2Vec.v1")
def elmo_tok2vec(
    options_file: Optional[str] = None,
    weight_file: Optional[str] = None,
    trainable: bool = False,
    cache: bool = False,
    bilm: Optional[str] = None,
) -> Model[List[Doc], List[Floats2d]]:
    """
    ELMo as the `tok2vec` of a spaCy component. The biLM's scalar mix is trained with the component.
    The vectors are as wide as the biLM's layers; white-space tokens get zeros. The trainer's
    `dropout` applies to the vectors. The biLM becomes part of the trained pipeline, which no longer
    needs its files. When training begins, a wrong file raises a `ConfigurationError`, and so does
    `trainable` together with `cache`.

    # Parameters

    bilm, options_file, weight_file : `Optional[str]`
        See `load_bilm`. The files are read when training begins.
    trainable : `bool`
        Whether to train the biLM, too, rather than freeze it.
    cache : `bool`
        Whether to keep the layers of each sentence on disk; see `Elmo`.
    """
    return Model(
        "elmo_tok2vec",
        _forward,
        init=partial(_init, options_file, weight_file, bilm),
        shims=[ElmoShim(trainable, cache)],
        dims={"nO": None},
        # What spaCy's trainer sets.
        attrs={"dropout_rate": 0.0},
    )


class ElmoShim(PyTorchShim):
    """Thinc's wrapper of `Elmo`, loaded from the biLM's files or from a trained pipeline."""

    def __init__(self, trainable: bool, cache: bool) -> None:
        super().__init__(None)
        self._trainable, self._cache = trainable, cache

    @property
    def elmo(self) -> Elmo:
        """Raises `ConfigurationError` if nothing has been loaded."""
        if self._model is None:
            raise ConfigurationError(
                "elmo.Tok2Vec.v1 has no biLM yet: call `nlp.initialize()` before training, or load "
                "a trained pipeline."
            )
        return self._model

    def load(
        self, options_file: Optional[str], weight_file: Optional[str], bilm: Optional[str] = None
    ) -> None:
        """Loads a biLM, and gives its layers equal weights."""
        settings = {"trainable": self._trainable, "cache": self._cache, "bilm": bilm}
        elmo = Elmo(options_file, weight_file, dropout=0.0, **settings)  # type: ignore[arg-type]
        self._model = elmo.to(get_torch_default_device())

    def vectors(self, sentences: Sequence[Sequence[str]], is_train: bool) -> torch.Tensor:
        """
        Returns shape `(num_sentences, num_tokens, dim)`. Changes the training mode only if needed,
        unlike Thinc's `begin_update` and `predict`: each change makes the biLM prepare its weights
        again.
        """
        elmo = self.elmo
        if elmo.training != is_train:
            elmo.train(is_train)
        ids = elmo.bilm.characters.batch_ids(sentences).to(elmo.bilm.options_json.device)
        with torch.set_grad_enabled(is_train):
            return elmo(ids)

    def finish_update(self, optimizer: Optimizer) -> None:
        for name, parameter in self.elmo.named_parameters():
            if parameter.grad is not None:
                values, _ = optimizer(
                    (self.id, name),
                    cast(Floats1d, torch2xp(parameter.data.reshape(-1))),
                    cast(Floats1d, torch2xp(parameter.grad.reshape(-1))),
                )
                parameter.data = xp2torch(values, device=parameter.device).view_as(parameter)
                parameter.grad.zero_()
        if self._trainable:
            # Thinc changes weights in place, which PyTorch does not notice; `train` tells the biLM.
            self.elmo.train()

    def to_bytes(self) -> bytes:
        return b"" if self._model is None else folder_to_bytes(self._write)

    def from_bytes(self, data: bytes) -> "ElmoShim":
        if data:
            with folder_of_bytes(data) as folder:
                self.load(str(folder / CONFIG_FILE), str(folder / SAFETENSORS_FILE))
                self.elmo.mixes.load_state_dict(read_state(folder / _MIX_FILE, _MIX_FILE))
        return self

    def _write(self, folder: Path) -> None:
        self.elmo.bilm.save_pretrained(folder)
        save_atomically(self.elmo.mixes.state_dict(), folder / _MIX_FILE)


def _init(
    options_file: Optional[str],
    weight_file: Optional[str],
    bilm: Optional[str],
    model: Model,
    X: Any,
    Y: Any,
) -> None:
    shim = cast(ElmoShim, model.shims[0])
    shim.load(options_file, weight_file, bilm)
    model.set_dim("nO", shim.elmo.get_output_dim())


def _forward(
    model: Model[List[Doc], List[Floats2d]], docs: Sequence[Doc], is_train: bool
) -> Tuple[List[Floats2d], Callable]:
    shim = cast(ElmoShim, model.shims[0])
    # For each sentence: the number of its document, and the positions of its tokens there.
    places, words = [], []
    for number, doc in enumerate(docs):
        for tokens in sentences_of(doc):
            places.append((number, [token.i for token in tokens]))
            words.append([token.text for token in tokens])

    def read(batch: Sequence[Sequence[str]]) -> List[Any]:
        return _rows(shim.vectors(batch, is_train=False), batch)

    if is_train:
        shim.elmo.dropout.p = model.attrs["dropout_rate"]
        output = shim.vectors(words, is_train)
    vectors = _rows(output, words) if is_train else map_in_batches(read, words, _BATCH_SIZE)
    # Shape of each: (num_tokens, dim)
    found = [model.ops.alloc2f(len(doc), shim.elmo.get_output_dim()) for doc in docs]
    for (number, positions), rows in zip(places, vectors):
        found[number][positions] = rows

    def backprop(gradients: List[Floats2d]) -> List[Doc]:
        gradient = torch.zeros_like(output)
        for (number, positions), row in zip(places, gradient):
            own = gradients[number][positions]
            row[: len(positions)] = xp2torch(own, device=output.device)
        output.backward(gradient)
        return []

    return found, backprop


def _rows(vectors: torch.Tensor, sentences: Sequence[Sequence[str]]) -> List[Any]:
    """Returns an array of shape `(num_tokens, dim)` for each sentence."""
    return [torch2xp(row[: len(words)].detach()) for row, words in zip(vectors, sentences)]
