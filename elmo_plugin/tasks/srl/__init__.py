"""Semantic role labelling: who did what to whom."""

from elmo_plugin.modules.seq2seq_encoders.highway_lstm import HighwayLstm
from elmo_plugin.tasks.srl.metric import SrlSpanF1
from elmo_plugin.tasks.srl.model import SemanticRoleLabeler
from elmo_plugin.tasks.srl.predictor import SrlPredictor
from elmo_plugin.tasks.srl.reader import SrlReader

__all__ = ["HighwayLstm", "SemanticRoleLabeler", "SrlPredictor", "SrlReader", "SrlSpanF1"]
