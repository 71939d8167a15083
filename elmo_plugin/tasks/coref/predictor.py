from bisect import bisect_right
from itertools import accumulate
from typing import Any, Dict, Iterable, List, Sequence, Tuple

from allennlp.common.util import JsonDict
from allennlp.data import Field, Instance, Token
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.conll2012 import Mention, format_coreference
from elmo_plugin.corpora.tokenizer import sentences_by_rules, tokenize_with_spacy
from elmo_plugin.tasks.coref.reader import UNKNOWN, genre_of, mentions_of
from elmo_plugin.tasks.prediction import MarkedWords, Part, Prediction
from elmo_plugin.tasks.predictor import TEXT, WORDS, TaskPredictor, page_of
from elmo_plugin.util.errors import expect


@Predictor.register("elmo-coref")
class CorefPredictor(TaskPredictor):
    """
    Finds the mentions of a document that refer to the same entity.

    An input line is `{"text": "Anna lost her keys. She was late."}` or `{"sentences": [["Anna",
    "lost", …], …]}`. spaCy's English rules split a text into sentences and tokens; like OntoNotes,
    they split words at hyphens. `"speakers": ["Tom", …]` may name one for each of the `sentences`,
    `-` if unknown. A line may also have an `"id"`, and a `"genre"` of the training corpus; by
    default the folders in the `id` determine the genre.

    The output `json` has `id`, `part`, `sentences` and `clusters`. A cluster lists its mentions in
    the order of the text. A mention has the number of its `sentence`, the positions there of its
    first and last token (`start`, `end`), its `text`, and for raw text the offsets of its
    `characters`. For a labelled corpus there are `gold_clusters`, too.

    The output `conll` has the tab-separated columns of CoNLL-2012 for the reference scorer. The
    last column holds the predicted clusters; the columns between it and the words are empty.
    `conll` keeps `#begin document` lines, because the scorer finds documents by them.
    """

    title = "Coreference"
    summary = "Which mentions of a text refer to the same entity"
    page = page_of(__file__)
    example = {
        "text": "The company said that it would sell its factories. The workers fear that they "
        "will lose their jobs."
    }
    schema = {
        "text": TEXT,
        "sentences": {
            "type": "array",
            "items": WORDS,
            "minItems": 1,
            "description": 'a list of sentences such as [["Anna", "left"], ["She", "ran"]]',
        },
        "speakers": {
            "type": "array",
            "items": {"type": "string"},
            "description": "a list of names, one for each sentence",
        },
        "id": TEXT,
        "genre": TEXT,
    }
    reads_documents = True
    text_field = "text"
    corpus_start = "#begin document"
    output_formats = ("json", "conll")

    def predict(self, text: str) -> JsonDict:
        return self.predict_json({"text": text})

    @overrides
    def line_of(self, sentences: List[List[str]]) -> JsonDict:
        return {"sentences": sentences}

    @classmethod
    @overrides
    def draw(cls, prediction: Prediction) -> Iterable[Part]:
        spans: List[List[Tuple[int, int, str]]] = [[] for _ in prediction["sentences"]]
        for number, cluster in enumerate(prediction["clusters"], start=1):
            for each in cluster:
                spans[each["sentence"]].append((each["start"], each["end"], str(number)))
        return map(MarkedWords, prediction["sentences"], spans)

    @overrides
    def _checked(self, line: JsonDict, location: str) -> JsonDict:
        has_one = ("text" in line) != ("sentences" in line)
        expect(has_one, location, 'either "text" or "sentences"', line)
        if "speakers" in line:
            expected = '"speakers" with a name for each of the "sentences", "-" if not known'
            is_right = len(line["speakers"]) == len(line.get("sentences", ()))
            expect(is_right, location, expected, line["speakers"])
        # The scorer distinguishes documents by their names.
        return {"id": f"line_{self._num_lines}" if self._num_lines else UNKNOWN, **line}

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        line = self._valid(json_dict, "the document")
        sentences, characters = _sentences(line)
        speakers = [name for name, words in zip(line.get("speakers", ()), sentences) for _ in words]
        instance = self._dataset_reader.text_to_instance(
            [[Token(word) for word in sentence] for sentence in sentences],
            speakers or None,
            line.get("genre") or genre_of(line["id"]),
            document_id=line["id"],
        )
        if "text" in line:
            instance["metadata"].metadata.update(text=line["text"], characters=characters)
        return instance

    @overrides
    def _labels(self, instance: Instance, outputs: Dict[str, Any]) -> Dict[str, Field]:
        return {"gold_mentions": mentions_of(outputs["clusters"])}

    @overrides
    def _described(self, output: Dict[str, Any]) -> JsonDict:
        metadata = output["metadata"]
        gold, is_conll = metadata["clusters"], self._output_format == "conll"
        return {
            "id": metadata["document_id"],
            "part": metadata["part"],
            "sentences": metadata["sentences"],
            "clusters": _in_order(output["clusters"], metadata),
            "gold_clusters": None if gold is None else _in_order(gold, metadata),
            "begin_line": metadata["begin_line"] if is_conll else None,
        }

    @overrides
    def _for_scorer(self, outputs: JsonDict) -> str:
        mentions: List[List[Mention]] = [[] for _ in outputs["sentences"]]
        for number, cluster in enumerate(outputs["clusters"]):
            for mention in cluster:
                span = Mention(number, mention["start"], mention["end"])
                mentions[mention["sentence"]].append(span)
        return format_coreference(
            outputs["id"],
            outputs["part"],
            outputs["sentences"],
            mentions,
            outputs.get("begin_line"),
        )


def _sentences(line: JsonDict) -> Tuple[List[List[str]], List[Tuple[int, int]]]:
    """
    The words of each sentence of a line and, if it has a `text`, start and end of each word there.
    Splits by spaCy's rules for English, and at empty lines: headings have no full stop.
    """
    if "sentences" in line:
        return line["sentences"], []
    words: List[List[str]] = []
    characters: List[Tuple[int, int]] = []
    for sentence in sentences_by_rules(tokenize_with_spacy(line["text"])[0].doc):
        words.append([])
        for token in sentence:
            if not token.is_space:
                words[-1].append(token.text)
                characters.append((token.idx, token.idx + len(token)))
            elif token.text.count("\n") > 1:
                words.append([])
    return [each for each in words if each], characters


def _in_order(
    clusters: Sequence[Sequence[Tuple[int, int]]], metadata: Dict[str, Any]
) -> List[List[JsonDict]]:
    """Sorts clusters by their first mentions, and puts them in the form of the output."""
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
