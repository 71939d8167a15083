"""Recurrent encoders for AllenNLP models."""

from elmo_plugin.modules.seq2seq_encoders.bigru import BiGru
from elmo_plugin.modules.seq2seq_encoders.bilstm import BiLstm
from elmo_plugin.modules.seq2seq_encoders.highway_lstm import HighwayLstm

__all__ = ["BiGru", "BiLstm", "HighwayLstm"]
