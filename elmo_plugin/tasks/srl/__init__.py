"""Semantic role labelling: who did what to whom."""

from elmo_plugin.tasks.srl.metric import SrlSpanF1
from elmo_plugin.tasks.srl.model import SemanticRoleLabeler
from elmo_plugin.tasks.srl.predictor import SrlPredictor
from elmo_plugin.tasks.srl.reader import SrlReader

__all__ = ["SemanticRoleLabeler", "SrlPredictor", "SrlReader", "SrlSpanF1"]
