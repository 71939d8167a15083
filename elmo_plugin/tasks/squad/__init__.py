"""Question answering: which words of a passage answer a question on it?"""

from elmo_plugin.tasks.squad.metric import SquadScores
from elmo_plugin.tasks.squad.model import Squad
from elmo_plugin.tasks.squad.predictor import SquadPredictor
from elmo_plugin.tasks.squad.reader import SquadReader

__all__ = ["Squad", "SquadPredictor", "SquadReader", "SquadScores"]
