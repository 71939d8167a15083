"""
Training with AllenNLP in processes that `torchrun` has started, in place of AllenNLP's own. Process
0 counts the vocabulary and writes. The others get its experiment and read its checkpoints from the
same folder. If a process fails, all end, and the same command with `--recover` continues.
"""

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any, List

import torch
from allennlp.commands import train
from allennlp.common import Params
from allennlp.common import logging as common_logging
from allennlp.common.checks import check_for_gpu
from allennlp.common.meta import META_NAME, Meta
from allennlp.common.util import prepare_environment
from allennlp.data import Vocabulary
from allennlp.models.archival import CONFIG_NAME, verify_include_in_archive
from allennlp.training.util import create_serialization_dir, make_vocab_from_params
from torch import distributed

from elmo_plugin.util.distributed import end_with_parent
from elmo_plugin.util.errors import ConfigurationError

# On a network file system a new file may become visible only after half a minute.
_SECONDS_TO_SEE_FILES = 60
# Seconds between two checks.
_INTERVAL = 0.2


def train_under_torchrun(
    params: Params,
    folder: Path,
    recover: bool = False,
    force: bool = False,
    dry_run: bool = False,
    **_: Any,
) -> None:
    """
    AllenNLP's `train_model` in one process of `torchrun`, which replaces the experiment's
    `distributed` except `cuda_devices`, the devices of this machine's processes (-1: CPU; default:
    its GPUs, if any). Raises `ConfigurationError` if this process does
    not see the files of process 0, or the machine has fewer devices than processes.
    """
    # A process that outlived torchrun's agent would write into the folder of the repeated command.
    if sys.platform != "win32":
        end_with_parent(os.getppid(), signal.SIGKILL)
    store, rank, world_size = next(distributed.rendezvous("env://"))
    if rank == 0:
        _prepare(params, folder, recover, force, dry_run)
        begun = {"experiment": params.as_dict(quiet=True), "files": _files(folder)}
        store.set("begun", json.dumps(begun))
    params = _experiment(store, folder)
    include_in_archive = params.pop("include_in_archive", None)
    common_logging.prepare_global_logging(folder, rank=rank, world_size=world_size)
    prepare_environment(params)
    training = _training(params, folder, rank, world_size, store)
    if dry_run:
        return
    metrics = training.run()
    if rank == 0:
        training.finish(metrics)
        train.archive_model(folder, include_in_archive=include_in_archive)
    if world_size > 1:
        # The store may end with process 0.
        distributed.barrier()


def _prepare(params: Params, folder: Path, recover: bool, force: bool, dry_run: bool) -> None:
    """Creates the folder, or checks the one to continue in, like `train_model`."""
    create_serialization_dir(params, folder, recover, force)
    verify_include_in_archive(params.get("include_in_archive"))
    directory = str(folder / "vocabulary")
    if recover:
        vocabulary = Vocabulary.from_files(directory)
    else:
        params.to_file(str(folder / CONFIG_NAME))
        Meta.new().to_file(folder / META_NAME)
        vocabulary = make_vocab_from_params(params.duplicate(), folder, print_statistics=dry_run)
    params.pop("evaluation", None)
    tokens = {"padding_token": vocabulary._padding_token, "oov_token": vocabulary._oov_token}
    params["vocabulary"] = {"type": "from_files", "directory": directory, **tokens}


def _experiment(store: distributed.Store, folder: Path) -> Params:
    """The experiment that process 0 has prepared, once this process sees its files."""
    # `Store.wait` would delay signals, and has a time limit.
    while not store.check(["begun"]):
        time.sleep(_INTERVAL)
    begun = json.loads(store.get("begun"))
    deadline = time.monotonic() + _SECONDS_TO_SEE_FILES
    while (found := _files(folder)) != begun["files"]:
        if time.monotonic() > deadline:
            raise ConfigurationError(
                f"Expected {', '.join(begun['files'])} in {folder}, where process 0 sees them, "
                f"found {', '.join(found) or 'none of them'} on {socket.gethostname()}. Let "
                "--serialization-dir be one folder of a file system that all machines share."
            )
        time.sleep(_INTERVAL)
    return Params(begun["experiment"])


def _training(
    params: Params, folder: Path, rank: int, world_size: int, store: distributed.Store
) -> train.TrainModel:
    settings = params.pop("distributed", None) or Params({})
    params["trainer"]["cuda_device"] = device = _device(settings.get("cuda_devices"))
    if world_size > 1:
        if device >= 0:
            torch.cuda.set_device(device)
        distributed.init_process_group(
            "gloo" if device < 0 else "nccl", store=store, rank=rank, world_size=world_size
        )
        params["trainer"].update(world_size=world_size, distributed=True)
    # The rank among all machines, so that only process 0 writes.
    return train.TrainModel.from_params(
        params=params,
        serialization_dir=str(folder),
        local_rank=rank,
    )


def _device(devices: Any) -> int:
    number, count = int(os.environ["LOCAL_RANK"]), int(os.environ["LOCAL_WORLD_SIZE"])
    if devices is None:
        devices = list(range(torch.cuda.device_count())) or [-1] * count
    if not isinstance(devices, list) or len(devices) < count:
        raise ConfigurationError(
            f"Expected a device for each of the {count} processes of this machine "
            f"({socket.gethostname()}), found {devices}. Set `distributed.cuda_devices`, or "
            "--nproc-per-node of torchrun."
        )
    check_for_gpu(devices[number])
    return devices[number]


def _files(folder: Path) -> List[str]:
    """The files by which a process finds the same checkpoint as process 0."""
    patterns = (CONFIG_NAME, "model_state_e*_b*.th", "metrics_epoch_*.json")
    return sorted(path.name for pattern in patterns for path in folder.glob(pattern))
