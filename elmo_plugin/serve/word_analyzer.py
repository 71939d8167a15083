import json
import sys
from typing import Any, Dict, List, Optional, Tuple

import numpy

from elmo_plugin.analysis.context_index import bilm_settings
from elmo_plugin.analysis.neighbours import ContextIndex, Query, one_pass, to_json
from elmo_plugin.analysis.surprisal import BITS, DIRECTIONS, Scorer
from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights
from elmo_plugin.corpora.json_lines import check_fields, parse_object
from elmo_plugin.serve.served_task import Limits
from elmo_plugin.util.errors import expect
from elmo_plugin.util.files import shipped

_NUM_NEIGHBOURS = 5


class ShippedContexts(ContextIndex):
    """
    Contexts of frequent words in Wikipedia, of the biLM that comes with the project. The file, by
    `scripts/shipped_contexts.py`, has the arrays of a `ContextIndex` with some of their rows:
    vectors in int8, and the position of each in its sentence.
    """

    source = "Contexts of English Wikipedia, by its authors, CC BY-SA 3.0."

    def __init__(self) -> None:
        self.folder = shipped("pretrained/small/contexts.npz")
        with numpy.load(self.folder) as arrays:
            self.settings = json.loads(arrays["settings"].item())
            self._sentences, self._text = arrays["sentences"], arrays["text"]
            self._positions, self.layers = arrays["positions"], {}
            for layer in self.settings["layers"]:
                vectors = arrays[f"layer_{layer}"].astype("f4")
                norms = numpy.linalg.norm(vectors, axis=1, keepdims=True)
                self.layers[layer] = (vectors / norms).astype("f2")

    def context(self, row: int) -> Tuple[int, int, Tuple[str, ...]]:
        line, _, words = super().context(row)
        return line, int(self._positions[row]), words


def shipped_contexts(bilm: Bilm) -> Optional[ContextIndex]:
    """The contexts that come with the project, if they are of this biLM."""
    index = ShippedContexts()
    return index if bilm_settings(bilm).items() <= index.settings.items() else None


class WordAnalyzer:
    """
    Computes the surprisal of a word in its sentence and its nearest contexts in a text. Surprisal
    needs a `softmax`; contexts need an `index` that was built with the same biLM.
    """

    summary = "Surprisal and nearest contexts of a word in its sentence"
    example = {"words": ["They", "play", "chess"], "position": 1}
    schema = {
        "words": {
            "type": "array",
            "items": {"type": "string", "pattern": r"^\S+(?!\s)$"},
            "minItems": 1,
            "description": "a list of words without white space",
        },
        "position": {"type": "integer", "minimum": 0, "description": "a position from 0"},
    }

    def __init__(
        self,
        bilm: Bilm,
        softmax: Optional[SoftmaxWeights],
        index: Optional[ContextIndex],
        limits: Limits,
    ) -> None:
        self._bilm = bilm
        self._scorer = None if softmax is None else Scorer(bilm, softmax)
        self._index = index
        self._limits = limits
        #: What the page says of the contexts.
        self.source = getattr(index, "source", "")
        if index is not None:
            index.check_bilm(bilm)

    def read(self, request: str) -> Query:
        """Parses and checks a request such as `example`. Positions count from 0."""
        example = json.dumps(self.example)
        line = parse_object(request, "the request", example)
        line = check_fields(line, self.schema, "the request", example)
        words, position = line.get("words", []), line.get("position", sys.maxsize)
        expected = f'"words" and the "position" of one of them, as in {example}'
        expect(position < len(words), "the request", expected, line)
        self._limits.check_words([words])
        return Query(tuple(words), position)

    def answer(self, queries: List[Query]) -> List[str]:
        """
        Returns a line of JSON for each query. `surprisal` is in bits: `forward`, `backward`, and
        `both`, their mean; `surprisals` has the means of all words. `known` says whether the word
        is in the vocabulary. `neighbours` holds contexts by layer, each with `cosine`, `line`,
        `position` and `words`. Without a softmax, the first three are `null`, without an index,
        `neighbours` is.
        """
        found = [
            {**self._surprisal(each), "neighbours": self._neighbours(each)} for each in queries
        ]
        return [json.dumps(each, ensure_ascii=False) + "\n" for each in found]

    def _surprisal(self, query: Query) -> Dict[str, Any]:
        if self._scorer is None:
            return {"surprisal": None, "surprisals": None, "known": None}
        (score,) = self._scorer.score([query.words])
        bits = {name: BITS * float(getattr(score, name)[query.position]) for name in DIRECTIONS}
        surprisals = (BITS * score.both).tolist()
        known = score.known[query.position]
        return {"surprisal": bits, "surprisals": surprisals, "known": known}

    def _neighbours(self, query: Query) -> Optional[Dict[str, Any]]:
        if self._index is None:
            return None
        # Hashing the weights of a large biLM takes longer than a search: they are checked once.
        (found,) = one_pass(self._index, self._bilm, [query], _NUM_NEIGHBOURS)
        return to_json(found)
