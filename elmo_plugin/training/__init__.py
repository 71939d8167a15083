from elmo_plugin.training.reduce_on_plateau import ReduceOnPlateau

__all__ = ["ReduceOnPlateau"]
