import json
import sys
from typing import Any, Dict, List, Optional

from elmo_plugin.analysis.neighbours import ContextIndex, Query, one_pass, to_json
from elmo_plugin.analysis.surprisal import BITS, DIRECTIONS, Scorer
from elmo_plugin.bilm import Bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights
from elmo_plugin.corpora.json_lines import check_fields, parse_object
from elmo_plugin.serve.served_task import Limits
from elmo_plugin.util.errors import expect

_NUM_NEIGHBOURS = 5


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
        `both`, their mean. `known` says whether the word is in the vocabulary. `neighbours` holds
        contexts by layer, each with `cosine`, `line`, `position` and `words`. `surprisal` and
        `known` are `null` without a softmax, `neighbours` is without an index.
        """
        found = [
            {**self._surprisal(each), "neighbours": self._neighbours(each)} for each in queries
        ]
        return [json.dumps(each, ensure_ascii=False) + "\n" for each in found]

    def _surprisal(self, query: Query) -> Dict[str, Any]:
        if self._scorer is None:
            return {"surprisal": None, "known": None}
        (score,) = self._scorer.score([query.words])
        bits = {name: BITS * float(getattr(score, name)[query.position]) for name in DIRECTIONS}
        return {"surprisal": bits, "known": score.known[query.position]}

    def _neighbours(self, query: Query) -> Optional[Dict[str, Any]]:
        if self._index is None:
            return None
        # Hashing the weights of a large biLM takes longer than a search: they are checked once.
        (found,) = one_pass(self._index, self._bilm, [query], _NUM_NEIGHBOURS)
        return to_json(found)
