"""Recurrent encoders for AllenNLP models."""

from elmo_plugin.modules.seq2seq_encoders.bidirectional import BiGru, BiLstm
from elmo_plugin.modules.seq2seq_encoders.highway_lstm import HighwayLstm

__all__ = ["BiGru", "BiLstm", "HighwayLstm"]
