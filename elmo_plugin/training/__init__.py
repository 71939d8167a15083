"""Trainers, checkpointers, schedulers and optimizers that AllenNLP lacks. Imports `util` only."""

from elmo_plugin.training.atomic_checkpointer import AtomicCheckpointer
from elmo_plugin.training.bootstrap_evaluator import BootstrapEvaluator
from elmo_plugin.training.decay_by_batches import DecayByBatches
from elmo_plugin.training.fused_optimizers import FusedAdagrad, FusedAdam
from elmo_plugin.training.linear_decay import LinearDecay
from elmo_plugin.training.moving_average import RecoverableMovingAverage
from elmo_plugin.training.muon import Muon
from elmo_plugin.training.recoverable_trainer import RecoverableTrainer
from elmo_plugin.training.reduce_on_plateau import ReduceOnPlateau
from elmo_plugin.util.weights import save_atomically

__all__ = [
    "AtomicCheckpointer",
    "BootstrapEvaluator",
    "DecayByBatches",
    "FusedAdagrad",
    "FusedAdam",
    "LinearDecay",
    "Muon",
    "RecoverableMovingAverage",
    "RecoverableTrainer",
    "ReduceOnPlateau",
    "save_atomically",
]
