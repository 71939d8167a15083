"""Trainers, checkpointers, schedulers and optimizers that AllenNLP lacks. Imports `util` only."""

from elmo_plugin.training.atomic_checkpointer import AtomicCheckpointer
from elmo_plugin.training.bootstrap_evaluator import BootstrapEvaluator
from elmo_plugin.training.optimizers import FusedAdagrad, FusedAdam, Muon
from elmo_plugin.training.recoverable_trainer import RecoverableTrainer
from elmo_plugin.training.schedulers import DecayByBatches, LinearDecay, ReduceOnPlateau

__all__ = [
    "AtomicCheckpointer",
    "BootstrapEvaluator",
    "DecayByBatches",
    "FusedAdagrad",
    "FusedAdam",
    "LinearDecay",
    "Muon",
    "RecoverableTrainer",
    "ReduceOnPlateau",
]
