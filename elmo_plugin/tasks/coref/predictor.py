import json
from bisect import bisect_right
from itertools import accumulate
from typing import Any, Dict, List, Sequence, Tuple

from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Instance, Token
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.conll2012 import Mention, check_columns, format_coreference
from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.tasks.coref.input import EXAMPLE, document_of
from elmo_plugin.util.errors import ConfigurationError

OUTPUT_FORMATS = ("json", "conll")


@Predictor.register("elmo-coref")
class CorefPredictor(Predictor):
    """
    Finds the mentions of a document that refer to the same thing.

    A line of input is JSON: `{"text": "Anna lost her keys. She was late."}`, in which spaCy's
    English rules find words, which they divide at hyphens as OntoNotes does, and sentences; or
    `{"sentences": [["Anna", "lost", …], …]}`, then perhaps with `"speakers": ["Tom", …]`, one for
    each sentence, `-` where it is not known. Either may have an `"id"`, and a `"genre"`, such as
    one of those the model was trained on; without one it is what the folders of the `id` tell. With
    `--use-dataset-reader` the input is a CoNLL-2012 file.

    # Parameters

    model : `Model`
    dataset_reader : `DatasetReader`
    output_format : `str`, optional (default = `"json"`)
        `json` lines, or `conll`: the columns of CoNLL-2012, separated by tabs, which the reference
        scorer reads. The last one holds what was found, those between the words and it are empty.
        Of a file, the lines `#begin document` stay as they are: the scorer finds documents by
        them.

    # Raises

    `ConfigurationError`
        If the output format is none of these.
    """

    def __init__(
        self, model: Model, dataset_reader: DatasetReader, output_format: str = "json"
    ) -> None:
        super().__init__(model, dataset_reader)
        if output_format not in OUTPUT_FORMATS:
            raise ConfigurationError(
                f"Expected `output_format` to be one of {OUTPUT_FORMATS}, found {output_format!r}."
            )
        self._output_format = output_format
        self._num_lines = 0

    def predict(self, text: str) -> JsonDict:
        """Finds the clusters of one raw text; see `predict_batch_instance` for the result."""
        return self.predict_json({"text": text})

    @overrides
    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    @overrides
    def predict_batch_instance(self, instances: List[Instance]) -> List[JsonDict]:
        """
        # Returns

        `List[JsonDict]`
            For each document its `id`, `part` and `sentences`; `clusters`, each a list of
            mentions in the order of the text, with number of the `sentence`, position there of the
            first and the last word in `start` and `end`, and `text`; and `marked_text`, a sentence
            a line: `[0 Anna ] lost [1 [0 her ] keys ] .` Mentions of a raw text also have
            `characters`: where in it they begin and end. `gold_clusters` where they are known.

        # Raises

        `ValueError`
            If a document has a name or words that the output has no room for.
        """
        if not instances:
            return []
        for instance in instances:
            metadata = instance["metadata"].metadata
            name = metadata["document_id"]
            self._check(name, metadata["sentences"], f"document {name!r}")
            self._dataset_reader.apply_token_indexers(instance)
        outputs = self._model.forward_on_instances(instances)
        answers = [_answer(output) for output in outputs]
        if self._output_format == "conll":
            for answer, output in zip(answers, outputs):
                answer["begin_line"] = output["metadata"]["begin_line"]
        return answers

    @overrides
    def load_line(self, line: str) -> JsonDict:
        """
        # Raises

        `ValueError`
            If the line is not JSON, holds no document, or words that the output has no room for.
        """
        self._num_lines += 1
        place = f"non-empty line {self._num_lines}"
        found = parse_object(line, place, EXAMPLE)
        document = document_of(found, place)
        if found.get("id") is None:
            # The scorer tells documents apart by their names.
            document = document._replace(document_id=f"line_{self._num_lines}")
        self._check(document.document_id, document.sentences, place)
        return {**found, "id": document.document_id}

    @overrides
    def dump_line(self, outputs: JsonDict) -> str:
        if self._output_format == "json":
            return json.dumps(outputs, ensure_ascii=False) + "\n"
        mentions: List[List[Mention]] = [[] for _ in outputs["sentences"]]
        for number, cluster in enumerate(outputs["clusters"]):
            for mention in cluster:
                place = Mention(number, mention["start"], mention["end"])
                mentions[mention["sentence"]].append(place)
        return format_coreference(
            outputs["id"],
            outputs["part"],
            outputs["sentences"],
            mentions,
            outputs.get("begin_line"),
        )

    def _check(self, document_id: str, sentences: List[List[str]], place: str) -> None:
        if self._output_format == "conll":
            try:
                check_columns(document_id, sentences)
            except ValueError as error:
                raise ValueError(f"{place}: {error}. JSON output has room for it.") from error

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        document = document_of(json_dict, "the document")
        instance = self._dataset_reader.text_to_instance(
            [[Token(word) for word in sentence] for sentence in document.sentences],
            document.speakers,
            document.genre,
            document_id=document.document_id,
        )
        if document.text is not None:
            instance["metadata"].metadata.update(text=document.text, characters=document.characters)
        return instance


def _answer(output: Dict[str, Any]) -> JsonDict:
    metadata = output["metadata"]
    clusters = _described(output["clusters"], metadata)
    answer = {
        "id": metadata["document_id"],
        "part": metadata["part"],
        "sentences": metadata["sentences"],
        "clusters": clusters,
        "marked_text": _marked(metadata["sentences"], clusters),
    }
    if metadata["clusters"] is not None:
        answer["gold_clusters"] = _described(metadata["clusters"], metadata)
    return answer


def _described(
    clusters: Sequence[Sequence[Tuple[int, int]]], metadata: Dict[str, Any]
) -> List[List[JsonDict]]:
    """Clusters in the order of their first mentions, with what is known of each mention."""
    sentences = metadata["sentences"]
    firsts = list(accumulate(map(len, sentences), initial=0))
    ordered = sorted(sorted((int(a), int(b)) for a, b in cluster) for cluster in clusters)
    return [[_mention(*span, firsts, metadata) for span in cluster] for cluster in ordered]


def _mention(first: int, last: int, firsts: List[int], metadata: Dict[str, Any]) -> JsonDict:
    sentence = bisect_right(firsts, first) - 1
    start, end = first - firsts[sentence], last - firsts[sentence]
    words = metadata["sentences"][sentence][start : end + 1]
    mention = {"sentence": sentence, "start": start, "end": end, "text": " ".join(words)}
    if "text" in metadata:
        characters = [metadata["characters"][first][0], metadata["characters"][last][1]]
        mention.update(text=metadata["text"][slice(*characters)], characters=characters)
    return mention


def _marked(sentences: List[List[str]], clusters: List[List[JsonDict]]) -> str:
    """`[0 Anna ] lost [1 [0 her ] keys ] .`"""
    opening = [[""] * len(words) for words in sentences]
    closing = [[""] * len(words) for words in sentences]
    mentions = [(mention, number) for number, cluster in enumerate(clusters) for mention in cluster]
    # The outer one of nested mentions opens first.
    for mention, number in sorted(mentions, key=lambda pair: -pair[0]["end"]):
        opening[mention["sentence"]][mention["start"]] += f"[{number} "
        closing[mention["sentence"]][mention["end"]] += " ]"
    return "\n".join(
        " ".join(f"{a}{word}{b}" for a, word, b in zip(before, words, after))
        for before, words, after in zip(opening, sentences, closing)
    )
