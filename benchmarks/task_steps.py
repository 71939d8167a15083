"""The operations that tasks.py measures: a training step, and prediction."""

from copy import deepcopy
from itertools import islice
from typing import Any, Callable, Dict, List

import torch
from allennlp.common import Params
from allennlp.data import Batch, DatasetReader, Instance, Vocabulary
from allennlp.data.fields import TextField
from allennlp.models import Model
from allennlp.training.optimizers import Optimizer

from elmo_plugin.util.bfloat16 import autocast_bfloat16

Tensors = Dict[str, Any]


def unlabelled(reader: DatasetReader, path: str, number: int) -> List[Instance]:
    """The first instances of a file without labels, as from a predictor."""
    instances = []
    for instance in islice(reader.read(path), number):
        instances.append(reader.text_to_instance(*texts(instance)))
        reader.apply_token_indexers(instances[-1])
    return instances


def texts(instance: Instance) -> List[Any]:
    """The arguments of `text_to_instance`: tokens, or raw text for question answering."""
    metadata = instance["metadata"].metadata
    if "passage" in metadata:
        return [metadata["question"], metadata["passage"]]
    if "speakers" in metadata:
        sentences = [field.tokens for field in instance["sentences"]]
        return [sentences, metadata["speakers"], metadata["genre"]]
    return [field.tokens for field in instance.values() if isinstance(field, TextField)]


def tensors(instances: List[Instance], vocab: Vocabulary) -> Tensors:
    batch = Batch(instances)
    batch.index_instances(vocab)
    return batch.as_tensor_dict()


def training(
    model: Model, trainer: Params, batches: List[Tensors], mixed_precision: bool = False
) -> Callable[[int], None]:
    """A training step: forward and backward pass, gradient clipping, optimizer."""
    learned = [(name, value) for name, value in model.named_parameters() if value.requires_grad]
    optimizer = Optimizer.from_params(
        params=Params(deepcopy(trainer["optimizer"])), model_parameters=learned
    )
    grad_norm = trainer.get("grad_norm")

    def step(turn: int) -> None:
        model.train()
        optimizer.zero_grad()
        with autocast_bfloat16(torch.device("cpu"), mixed_precision):
            loss = model(**batches[turn])["loss"]
        loss.backward()
        if grad_norm:
            torch.nn.utils.clip_grad_norm_([value for _, value in learned], grad_norm)
        optimizer.step()

    return step


def prediction(
    model: Model, batches: List[List[Tensors]], bfloat16: bool = False
) -> Callable[[int], None]:
    """As `Model.forward_on_instances`, from tensors to readable answers."""

    @torch.no_grad()
    def predict(turn: int) -> None:
        model.eval()
        with autocast_bfloat16(torch.device("cpu"), bfloat16):
            for batch in batches[turn]:
                model.make_output_human_readable(model(**batch))

    return predict
