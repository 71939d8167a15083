from typing import Any, Dict, Iterable, Sequence

from allennlp.common.util import JsonDict
from allennlp.data import Field, Instance
from allennlp.data.fields import SequenceLabelField
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.conll2003 import DOCUMENT_START, TAG, format_sentence
from elmo_plugin.corpora.tag_spans import bio_tags, tags_to_spans
from elmo_plugin.tasks.ner.reader import ENTITIES
from elmo_plugin.tasks.prediction import MarkedWords, Part, Prediction
from elmo_plugin.tasks.predictor import SentencePredictor


@Predictor.register("elmo-ner")
class NerPredictor(SentencePredictor):
    """
    Finds named entities in sentences.

    The output `json` has `tokens`, BIO `tags`, and `entities`, each with `type`, `text`, and the
    positions of its first and last token (`start`, `end`). For a corpus it adds `gold_tags`, if
    known, and `is_document_start`. The output `conll`, for `conlleval`, has a line per word with
    its gold tag, if known, and its predicted tag, both in BIO. It keeps `-DOCSTART-` lines.
    """

    title = "Named entities"
    summary = "Names in a sentence"
    example = {"sentence": "Ada Lovelace met Charles Babbage in London."}
    corpus_format = "columns"
    output_formats = ("json", "conll")

    @classmethod
    @overrides
    def draw(cls, prediction: Prediction) -> Iterable[Part]:
        spans = [(each["start"], each["end"], each["type"]) for each in prediction["entities"]]
        return [MarkedWords(prediction["tokens"], spans)]

    @overrides
    def is_corpus(self, lines: Sequence[str]) -> bool:
        rows = [line.split() for line in lines]
        if rows[0][0] == DOCUMENT_START:
            return True
        is_table = len(rows[0]) > 1 and len({len(row) for row in rows}) == 1
        return is_table and all(TAG.fullmatch(row[-1]) for row in rows)

    @overrides
    def _described(self, output: Dict[str, Any]) -> JsonDict:
        metadata, entities = output["metadata"], tags_to_spans(output["tags"])
        words = metadata["words"]
        return {
            "tokens": words,
            "tags": bio_tags(entities, len(words)),
            "entities": [
                {
                    "type": entity.label,
                    "start": entity.start,
                    "end": entity.end,
                    "text": " ".join(words[entity.start : entity.end + 1]),
                }
                for entity in entities
            ],
            "gold_tags": metadata["gold_tags"],
            "is_document_start": metadata["is_document_start"] or None,
        }

    @overrides
    def _labels(self, instance: Instance, outputs: Dict[str, Any]) -> Dict[str, Field]:
        return {"tags": SequenceLabelField(outputs["tags"], instance["tokens"], ENTITIES)}

    @overrides
    def _for_scorer(self, outputs: JsonDict) -> str:
        return format_sentence(
            outputs["tokens"],
            outputs["tags"],
            outputs.get("gold_tags"),
            outputs.get("is_document_start", False),
        )
