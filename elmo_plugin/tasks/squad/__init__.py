"""Question answering: the span of a passage that answers a question."""

from elmo_plugin.tasks.squad.metric import SquadScores
from elmo_plugin.tasks.squad.model import BidafSelfAttention
from elmo_plugin.tasks.squad.predictor import SquadPredictor
from elmo_plugin.tasks.squad.reader import SquadReader

__all__ = ["BidafSelfAttention", "SquadPredictor", "SquadReader", "SquadScores"]
