"""
Training with AllenNLP in processes that `torchrun` has started, in place of AllenNLP's own. Process
0 counts the vocabulary and writes. The others get its experiment and read its checkpoints from the
same folder. Processes that `torchrun` starts again continue from the last checkpoint.
"""

import json
import os
import signal
import socket
import time
import uuid
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
from allennlp.nn.parallel import DdpAccelerator
from allennlp.training.util import create_serialization_dir, make_vocab_from_params
from torch import distributed

from elmo_plugin.util.distributed import end_with_parent
from elmo_plugin.util.errors import ConfigurationError

# On a network file system a new file may become visible only after half a minute.
_SECONDS_TO_SEE_FILES = 60
# Seconds between two checks of a store. `Store.wait` would delay signals and has a time limit.
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
    `distributed` except `ddp_accelerator` and `cuda_devices`, the devices of this machine's
    processes (-1: CPU; default: its GPUs, if any). Raises `ConfigurationError` if process 0 cannot
    begin, this process does not see its files, or the machine has fewer devices than processes.
    """
    # A process that outlived torchrun's agent would write into the folder of the repeated command.
    end_with_parent(os.getppid(), signal.SIGKILL)
    store, rank, world_size = next(distributed.rendezvous("env://"))
    start = meet(store, rank, world_size)
    if rank == 0:
        try:
            _prepare(params, folder, recover, force, dry_run, store)
            experiment = params.as_dict(quiet=True)
            start.set("begun", json.dumps({"experiment": experiment, "files": _files(folder)}))
        except BaseException as error:
            start.set("begun", json.dumps({"error": str(error)}))
            raise
    params = _experiment(start, folder)
    include_in_archive = params.pop("include_in_archive", None)
    common_logging.prepare_global_logging(folder, rank=rank, world_size=world_size)
    prepare_environment(params)
    training = _training(params, folder, rank, world_size, start)
    if dry_run:
        return
    metrics = training.run()
    if rank == 0:
        training.finish(metrics)
        train.archive_model(folder, include_in_archive=include_in_archive)
        start.set("ended", "")
    # If process 0 is killed before that, torchrun can start all processes again.
    wait_for(start, "ended")
    if world_size > 1:
        # The store may end with process 0.
        distributed.barrier()


def meet(store: distributed.Store, rank: int, world_size: int) -> distributed.Store:
    """
    Waits for all processes. Returns a part of the store that is new at each start: `torchrun` keeps
    the store when it restarts processes, so it may hold keys of dead ones, such as their addresses.
    Its count of restarts differs between machines.
    """
    mine = uuid.uuid4().hex
    if rank:
        store.set(f"here/{rank}", mine)
        start = wait_for(store, f"start/{mine}").decode()
        store.set(f"{start}/{rank}", "")
        return distributed.PrefixStore(start, store)
    others = range(1, world_size)
    while not all(store.check([f"{mine}/{other}"]) for other in others):
        for other in others:
            # The key may come from a dead process: then nobody reads the answer.
            if store.check([f"here/{other}"]):
                store.set("start/" + store.get(f"here/{other}").decode(), mine)
        time.sleep(_INTERVAL)
    return distributed.PrefixStore(mine, store)


def wait_for(store: distributed.Store, key: str) -> bytes:
    """The value of a key, once a process has set it."""
    while not store.check([key]):
        time.sleep(_INTERVAL)
    return store.get(key)


def _prepare(
    params: Params, folder: Path, recover: bool, force: bool, dry_run: bool, store: Any
) -> None:
    """Creates the folder, or checks the one to continue in, like `train_model`."""
    key = f"continue {folder.resolve()} with"
    if store.check([key]):
        recover = store.get(key) == b"recover"
        force = not recover
    create_serialization_dir(params, folder, recover, force)
    store.set(key, "recover" if recover else "force")
    verify_include_in_archive(params.get("include_in_archive"))
    directory = str(folder / "vocabulary")
    if recover:
        vocabulary = Vocabulary.from_files(directory)
    else:
        params.to_file(str(folder / CONFIG_NAME))
        Meta.new().to_file(folder / META_NAME)
        vocabulary = make_vocab_from_params(params.duplicate(), folder, print_statistics=dry_run)
        store.set(key, "recover")
    params.pop("evaluation", None)
    tokens = {"padding_token": vocabulary._padding_token, "oov_token": vocabulary._oov_token}
    params["vocabulary"] = {"type": "from_files", "directory": directory, **tokens}


def _experiment(start: distributed.Store, folder: Path) -> Params:
    """The experiment that process 0 has prepared, once this process sees its files."""
    begun = json.loads(wait_for(start, "begun"))
    if "error" in begun:
        raise ConfigurationError(f"Process 0 could not begin: {begun['error']}")
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
    params: Params, folder: Path, rank: int, world_size: int, start: distributed.Store
) -> train.TrainModel:
    settings = params.pop("distributed", None) or Params({})
    params["trainer"]["cuda_device"] = device = _device(settings.get("cuda_devices"))
    accelerator = None
    place: Any = {"rank": rank, "world_size": world_size}
    if world_size > 1:
        if device >= 0:
            torch.cuda.set_device(device)
        distributed.init_process_group("gloo" if device < 0 else "nccl", store=start, **place)
        params["trainer"].update(world_size=world_size, distributed=True)
        if chosen := settings.pop("ddp_accelerator", None):
            accelerator = DdpAccelerator.from_params(
                chosen, local_rank=rank, world_size=world_size, cuda_device=device
            )
    # The rank among all machines, so that only process 0 writes.
    return train.TrainModel.from_params(
        params=params,
        serialization_dir=str(folder),
        local_rank=rank,
        ddp_accelerator=accelerator,
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
