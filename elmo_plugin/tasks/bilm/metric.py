from allennlp.training.metrics import Metric

from elmo_plugin.bilm.pretraining.perplexity import Perplexity


class PerplexityMetric(Perplexity, Metric):
    """`Perplexity` as a metric of AllenNLP."""
