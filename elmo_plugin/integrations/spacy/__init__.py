"""
ELMo in spaCy: the components `elmo`, `elmo_ner`, `elmo_srl` and `elmo_coref`, and the architecture
`elmo.Tok2Vec.v1`. spaCy finds them by itself where the package is installed; otherwise, import this
module.
"""

try:
    import spacy
except ImportError as error:
    raise ImportError(
        "ELMo in spaCy needs the package spacy: pip install 'elmo-plugin[spacy]'."
    ) from error

from elmo_plugin.integrations.spacy.tasks import Frame
from elmo_plugin.integrations.spacy.tok2vec import elmo_tok2vec
from elmo_plugin.integrations.spacy.vectors import ElmoVectors

__all__ = ["ElmoVectors", "Frame", "elmo_tok2vec"]
