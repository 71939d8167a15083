"""Training with AllenNLP in processes that `torchrun` has started."""

import json
import os
import signal
import socket
import time
from os import PathLike
from pathlib import Path
from typing import Any, List, Union

import torch
from allennlp.commands.train import TrainModel
from allennlp.common import Params
from allennlp.common import logging as common_logging
from allennlp.common.checks import check_for_gpu
from allennlp.common.meta import META_NAME, Meta
from allennlp.common.util import prepare_environment
from allennlp.data import Vocabulary
from allennlp.models.archival import CONFIG_NAME, archive_model, verify_include_in_archive
from allennlp.nn.parallel import DdpAccelerator
from allennlp.training.util import create_serialization_dir, make_vocab_from_params
from torch import distributed

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.parent import end_with_parent
from elmo_plugin.util.torchrun import ProcessRanks, rendezvous, wait_for

# On a network file system a new file may become visible only after half a minute.
_SECONDS_TO_SEE_FILES = 60


def train_under_torchrun(
    ranks: ProcessRanks,
    params: Params,
    serialization_dir: Union[str, PathLike],
    recover: bool = False,
    force: bool = False,
    dry_run: bool = False,
    file_friendly_logging: bool = False,
    **_: Any,
) -> None:
    """
    Runs AllenNLP's `train_model` in one process of `torchrun`. All processes train one model
    together, in place of the processes that AllenNLP's `distributed` would start. They train the
    experiment of process 0; only process 0 counts the vocabulary and writes, the others read its
    checkpoints from the same folder.

    If `torchrun` restarts its processes, they continue from the last checkpoint, or start over if
    the vocabulary was incomplete. `recover` is needed only for another `torchrun`, or
    for one whose store ends with the processes, such as that of `--rdzv-backend etcd-v2`.

    # Parameters

    ranks : `ProcessRanks`
        See `torchrun_ranks`.
    params, serialization_dir, recover, force, dry_run, file_friendly_logging
        As for `train_model`. Of the experiment's `distributed`, `cuda_devices` are the devices of
        the processes of one machine (-1: CPU), by default its GPUs if it has any, and
        `ddp_accelerator` is as in AllenNLP; `torchrun` replaces its other settings.

    # Raises

    `ConfigurationError`
        If process 0 cannot begin, this process finds other files than process 0, or a machine has
        fewer devices than processes.
    """
    # If it outlived torchrun's agent, it would write into the folder of the repeated command.
    end_with_parent(os.getppid(), signal.SIGKILL)
    common_logging.FILE_FRIENDLY_LOGGING = file_friendly_logging
    folder = Path(serialization_dir)
    store, _rank, _world_size = next(distributed.rendezvous("env://"))
    start = rendezvous(store, ranks)
    if ranks.rank == 0:
        try:
            _prepare(params, folder, recover, force, dry_run, store)
        except BaseException as error:
            start.set("begun", json.dumps({"error": str(error)}))
            raise
        experiment = params.as_dict(quiet=True)
        start.set("begun", json.dumps({"experiment": experiment, "files": _files(folder)}))
    else:
        params = _experiment(start, folder)
    include_in_archive = params.pop("include_in_archive", None)
    common_logging.prepare_global_logging(folder, rank=ranks.rank, world_size=ranks.world_size)
    prepare_environment(params)
    training = _training(params, folder, ranks, start)
    if dry_run:
        return
    metrics = training.run()
    if ranks.rank == 0:
        training.finish(metrics)
        archive_model(folder, include_in_archive=include_in_archive)
        start.set("ended", "")
    # If process 0 is killed before that, torchrun can start all processes again.
    wait_for(start, "ended")
    if ranks.world_size > 1:
        # The store may end with process 0.
        distributed.barrier()


def _prepare(
    params: Params,
    folder: Path,
    recover: bool,
    force: bool,
    dry_run: bool,
    store: distributed.Store,
) -> None:
    """Creates the folder of the training, or checks the one to continue in, as `train_model`."""
    key = f"continue {folder.resolve()} with"
    if store.check([key]):
        # torchrun's count of restarts cannot be used: it differs between machines.
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
    params["vocabulary"] = {
        "type": "from_files",
        "directory": directory,
        "padding_token": vocabulary._padding_token,
        "oov_token": vocabulary._oov_token,
    }


def _experiment(start: distributed.Store, folder: Path) -> Params:
    """The experiment that process 0 has prepared, for the other processes."""
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
        time.sleep(1)
    return Params(begun["experiment"])


def _training(
    params: Params, folder: Path, ranks: ProcessRanks, start: distributed.Store
) -> TrainModel:
    settings = params.pop("distributed", None) or Params({})
    device = _device(settings.get("cuda_devices"), ranks)
    accelerator = None
    if ranks.world_size > 1:
        if device >= 0:
            torch.cuda.set_device(device)
        distributed.init_process_group(
            "gloo" if device < 0 else "nccl",
            store=start,
            rank=ranks.rank,
            world_size=ranks.world_size,
        )
        params["trainer"]["world_size"] = ranks.world_size
        params["trainer"]["distributed"] = True
        if "ddp_accelerator" in settings:
            accelerator = DdpAccelerator.from_params(
                settings.pop("ddp_accelerator"),
                local_rank=ranks.rank,
                world_size=ranks.world_size,
                cuda_device=device,
            )
    params["trainer"]["cuda_device"] = device
    return TrainModel.from_params(
        params=params,
        serialization_dir=str(folder),
        # The rank among all machines, so that only process 0 writes.
        local_rank=ranks.rank,
        ddp_accelerator=accelerator,
    )


def _device(devices: Any, ranks: ProcessRanks) -> int:
    if devices is None:
        devices = list(range(torch.cuda.device_count())) or [-1] * ranks.local_world_size
    if not isinstance(devices, list) or len(devices) < ranks.local_world_size:
        raise ConfigurationError(
            f"Expected a device for each of the {ranks.local_world_size} processes of this machine "
            f"({socket.gethostname()}), found {devices}. Set `distributed.cuda_devices`, or "
            "--nproc-per-node of torchrun."
        )
    check_for_gpu(devices[ranks.local_rank])
    return devices[ranks.local_rank]


def _files(folder: Path) -> List[str]:
    """The files by which a process finds the same checkpoint as process 0."""
    paths = [folder / CONFIG_NAME, *folder.glob("model_state_e*_b*.th")]
    return sorted(path.name for path in paths if path.exists())
