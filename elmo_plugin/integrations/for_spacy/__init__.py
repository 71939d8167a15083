"""
The spaCy components `elmo`, `elmo_task`, `elmo_ner`, `elmo_srl` and `elmo_coref`, and the
architecture `elmo.Tok2Vec.v1`. Import this module if the package is not installed: spaCy finds only
an installed one.
"""

from elmo_plugin.util.errors import optional_package

optional_package("spacy", "ELMo in spaCy")
from elmo_plugin.integrations.for_spacy.pipes import ElmoVectors  # noqa: E402
from elmo_plugin.integrations.for_spacy.tasks import Frame  # noqa: E402
from elmo_plugin.integrations.for_spacy.tok2vec import elmo_tok2vec  # noqa: E402

__all__ = ["ElmoVectors", "Frame", "elmo_tok2vec"]
