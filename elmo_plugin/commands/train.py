"""
`allennlp train`, as AllenNLP has it, but a process that `torchrun` has started trains together with
the other processes of `torchrun`, and archives appear when they are complete.
"""

import logging
import os
from functools import wraps
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Optional, Union

from allennlp.commands import train as allennlp_train
from allennlp.common import Params
from allennlp.models import Model
from torch.distributed import is_torchelastic_launched

from elmo_plugin.training.torchrun import train_under_torchrun
from elmo_plugin.util.atomic_write import atomic_write, unfinished_suffix
from elmo_plugin.util.files import expanded

_train_model = allennlp_train.train_model
_archive_model = allennlp_train.archive_model
logger = logging.getLogger(__name__)


@wraps(_train_model)
def train_model(
    params: Params, serialization_dir: Union[str, PathLike], *args: Any, **kwargs: Any
) -> Optional[Model]:
    folder = expanded(serialization_dir)
    if not is_torchelastic_launched():
        return _train_model(params, folder, *args, **kwargs)
    train_under_torchrun(params, folder, *args, **kwargs)
    return None


@wraps(_archive_model)
def archive_model(serialization_dir: Union[str, PathLike], *args: Any, **kwargs: Any) -> str:
    """AllenNLP's function, but the archive is complete or absent, and a full disk is named."""
    archive = Path(serialization_dir, "model.tar.gz")
    logger.info("archiving weights and vocabulary to %s", archive)
    # In a folder, because the name of the file becomes part of its header.
    with (
        atomic_write(archive) as unfinished,
        TemporaryDirectory(unfinished_suffix(), "archive-", serialization_dir) as folder,
    ):
        written = _archive_model(serialization_dir, *args, archive_path=folder, **kwargs)
        os.replace(written, unfinished)
    return str(archive)


allennlp_train.train_model = train_model
allennlp_train.archive_model = archive_model
