import csv
import re
from typing import Any, Dict, Iterable, Optional, Sequence, Tuple

from allennlp.common.util import JsonDict
from allennlp.data import Field, Instance
from allennlp.data.fields import SequenceLabelField
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.conll2003 import DOCUMENT_START, format_sentence
from elmo_plugin.corpora.tag_spans import bio_tags, is_span_tag, tags_to_spans
from elmo_plugin.tasks.ner.reader import ENTITIES
from elmo_plugin.tasks.prediction import MarkedWords, Part, Prediction
from elmo_plugin.tasks.predictor import SentencePredictor, page_of

# A line of CoNLL-U.
_CONLLU = re.compile(r"\d+([-.]\d+)?(\t[^\t]*){9}")


@Predictor.register("elmo-tagger")
class TagPredictor(SentencePredictor):
    """
    Tags the words of sentences.

    The output `json` has `tokens` and `tags`. Tags of spans are in BIO, and `entities` lists the
    spans, each with `type`, `text`, and the positions of its first and last token (`start`, `end`).
    For a corpus it adds `gold_tags`, if known, and `is_document_start`. The output `conll`, for
    `conlleval`, has a line per word with its gold tag, if known, and its predicted tag. It keeps
    `-DOCSTART-` lines.
    """

    title = "Tags"
    summary = "Tags of the words of a sentence"
    example = {"sentence": "Ada Lovelace met Charles Babbage in London."}
    output_formats = ("json", "conll")
    has_word_per_line = True

    @classmethod
    @overrides
    def draw(cls, prediction: Prediction) -> Iterable[Part]:
        if "entities" in prediction:
            spans = [(each["start"], each["end"], each["type"]) for each in prediction["entities"]]
        elif "predicate" in prediction:
            # Semantic roles have tags, too.
            raise KeyError("entities")
        else:
            spans = [(number, number, tag) for number, tag in enumerate(prediction["tags"])]
        return [MarkedWords(prediction["tokens"], spans)]

    @overrides
    def corpus_format(self, lines: Sequence[str]) -> Optional[Tuple[str, str]]:
        if any(map(_CONLLU.fullmatch, lines)):
            return "CoNLL-U", ".conllu"
        for format, suffix, rows in (
            ("columns", "", [line.split() for line in lines]),
            ("columns between commas", ".csv", list(csv.reader(lines))),
        ):
            widths = {len(row) for row in rows}
            if rows[0][0] == DOCUMENT_START or (len(widths) == 1 and self._are_tags(rows)):
                return format, suffix
        return None

    def _are_tags(self, rows: Sequence[Sequence[str]]) -> bool:
        """Whether the rows of a table, which may be those of a text, end in tags."""
        column = (self._dataset_reader.tag_column or 0) - 1
        if not 0 < column % len(rows[0]):
            return False
        tags = [row[column] for row in rows]
        if self._model.finds_spans:
            return all(map(is_span_tag, tags))
        # Sentences of one length may all end in a full stop, which is also a tag.
        known = set(self._model.tags)
        return len(set(tags)) > 1 and 2 * sum(tag in known for tag in tags) > len(tags)

    @overrides
    def _described(self, output: Dict[str, Any]) -> JsonDict:
        metadata, tags, entities = output["metadata"], output["tags"], None
        words = metadata["words"]
        if self._model.finds_spans:
            found = tags_to_spans(tags)
            tags = bio_tags(found, len(words))
            entities = [
                {
                    "type": entity.label,
                    "start": entity.start,
                    "end": entity.end,
                    "text": " ".join(words[entity.start : entity.end + 1]),
                }
                for entity in found
            ]
        return {
            "tokens": words,
            "tags": tags,
            "entities": entities,
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


@Predictor.register("elmo-ner")
class NerPredictor(TagPredictor):
    """Finds named entities in sentences. For the output see `TagPredictor`."""

    title = "Named entities"
    summary = "Names in a sentence"
    page = page_of(__file__)
