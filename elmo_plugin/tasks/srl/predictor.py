import json
import sys
from functools import cached_property
from itertools import chain, islice
from typing import Any, Dict, Iterable, List, Optional, Sequence, Tuple, Union

import spacy
from allennlp.common.util import JsonDict
from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.fields import SequenceLabelField
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.archives import load_predictor
from elmo_plugin.corpora.conll2012 import format_propositions
from elmo_plugin.corpora.tag_spans import tags_to_spans
from elmo_plugin.corpora.tokenizer import verb_positions
from elmo_plugin.tasks.prediction import MarkedWords, Part, Prediction
from elmo_plugin.tasks.predictor import WORD, WORDS, SentencePredictor, page_of
from elmo_plugin.tasks.srl.reader import ROLES
from elmo_plugin.util.errors import ConfigurationError, excerpt, expect
from elmo_plugin.util.files import TAGGER, shipped_archives

# Minimum number of predicates per batch, if the lines have so many.
_MIN_BATCH_SIZE = 32
# Field of a corpus prediction: CoNLL output writes a sentence after its last predicate.
_IS_LAST = "is_last_of_sentence"


@Predictor.register("elmo-srl")
class SrlPredictor(SentencePredictor):
    """
    Labels the arguments of the predicates of sentences.

    An input line is `{"sentence": "The play began."}` or `{"tokens": ["The", …]}`. `"predicates"`
    lists positions (`[2]`) or words (`["began"]`), or is `"all"`, for every token. By default, the
    predicates are the verbs that `spacy_model` finds or, without one, the tagger that comes with
    the project, which is loaded when it is first needed.

    The output `json` has `tokens` and `frames`: for each predicate its position (`predicate`),
    `lemma`, BIO `tags` and a readable `description`. For a corpus it has a line for each predicate,
    with `gold_tags`, if known. The output `conll` has the propositions that `srl-eval.pl` reads. It
    leaves out sentences without a predicate, like `scripts/gold_propositions.py`.

    # Parameters

    spacy_model : `Optional[str]`
        Name or path of a spaCy pipeline that tags verbs: `token.tag_` begins with `VB`, or without
        tags, `token.pos_` is `VERB` or `AUX`. It also tokenises text; without it, spaCy's English
        rules do, which split words at hyphens like OntoNotes. A `ConfigurationError` is raised if
        the pipeline cannot be loaded, or has to find verbs and does not tag words.
    """

    title = "Semantic roles"
    summary = "Who did what to whom: the roles of the predicates of a sentence"
    page = page_of(__file__)
    example = {
        "sentence": "The girl gave her brother a book and left.",
        "predicates": ["gave", "left"],
    }
    schema = {
        "sentence": {"type": "string", "description": "a text"},
        "tokens": WORDS,
        "predicates": {
            "anyOf": [
                {"type": "array", "items": {"anyOf": [{"type": "integer", "minimum": 0}, WORD]}},
                {"const": "all"},
            ],
            "description": 'a list of positions or words, or "all"',
        },
    }
    corpus_start = "#begin document"
    output_formats = ("json", "conll")

    def __init__(
        self,
        model: Model,
        dataset_reader: DatasetReader,
        spacy_model: Optional[str] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(model, dataset_reader, **kwargs)
        self._spacy_model = spacy_model
        self._tagger_file: Any = None if spacy_model else shipped_archives().get(TAGGER)
        try:
            self._spacy = spacy.load(spacy_model) if spacy_model else spacy.blank("en")
        except OSError as error:
            raise ConfigurationError(
                f"spaCy cannot load {spacy_model!r} ({error}). Install it with `python -m spacy "
                "download NAME`, correct its path, or give the predicates."
            ) from error
        if not spacy_model:
            # spaCy's limit is for the RAM of parsers; this pipeline only tokenises.
            self._spacy.max_length = sys.maxsize
        # The frames of the current sentence, for CoNLL output of a file.
        self._frames: List[Dict[str, Any]] = []

    def predict(self, sentence: str, predicates: Any = None) -> JsonDict:
        return self.predict_json({"sentence": sentence, "predicates": predicates})

    @overrides
    def completed(self, line: JsonDict) -> JsonDict:
        return {**line, "predicates": self._read([line])[0][1]}

    @classmethod
    @overrides
    def draw(cls, prediction: Prediction) -> Iterable[Part]:
        words = prediction["tokens"]
        for frame in prediction["frames"] if "frames" in prediction else [prediction]:
            spans = [(e.start, e.end, e.label) for e in tags_to_spans(frame["tags"])]
            yield MarkedWords(words, spans, words[frame["predicate"]])

    @overrides
    def predict_json(self, inputs: JsonDict) -> JsonDict:
        return self.predict_batch_json([inputs])[0]

    @overrides
    def predict_batch_json(self, inputs: List[JsonDict]) -> List[JsonDict]:
        """
        Raises a `ValueError` if a line has neither `sentence` nor `tokens`, a predicate outside the
        sentence, or no `predicates` while nothing finds verbs.
        """
        inputs = [self._valid(line, "the sentence") for line in inputs]
        sentences = self._read(inputs)
        instances = [
            [self._instance(tokens, position) for position in predicates]
            for tokens, predicates in sentences
        ]
        together = list(chain.from_iterable(instances))
        batch_size = max(len(inputs), _MIN_BATCH_SIZE)
        frames: List[JsonDict] = []
        for first in range(0, len(together), batch_size):
            frames += self.predict_batch_instance(together[first : first + batch_size])
        for frame in frames:
            del frame["tokens"]
            frame.pop(_IS_LAST, None)
        remaining = iter(frames)
        return [
            Prediction(tokens=_words(tokens), frames=list(islice(remaining, len(of_sentence))))
            for (tokens, _), of_sentence in zip(sentences, instances)
        ]

    @overrides
    def texts(self, line: JsonDict) -> List[List[str]]:
        """Returns the sentence once for each predicate that is given, but at least once."""
        tokens = self._tokens(line, tag=False)
        predicates = self._predicates(line, tokens) if "predicates" in line else ()
        return [_words(tokens)] * max(1, len(predicates))

    @overrides
    def _checked(self, line: JsonDict, location: str) -> JsonDict:
        expected = '"sentence" with a text or "tokens" with a list of words'
        expect("sentence" in line or "tokens" in line, location, expected, line)
        expect(
            "predicates" in line or self._spacy_model or self._tagger_file,
            location,
            '"predicates", their positions, words or "all", or a spaCy pipeline that finds verbs',
            line,
            """--predictor-args '{"spacy_model": "en_core_web_sm"}' names one.""",
        )
        if "predicates" in line:
            self._predicates(line, self._tokens(line, tag=False), location)
        return line

    @overrides
    def _json_to_instance(self, json_dict: JsonDict) -> Instance:
        ((tokens, predicates),) = self._read([self._valid(json_dict, "the sentence")])
        expect(len(predicates) == 1, "", "one predicate to interpret", len(predicates))
        return self._instance(tokens, predicates[0])

    @overrides
    def get_gradients(self, instances: List[Instance]) -> Tuple[Dict[str, Any], Dict[str, Any]]:
        for instance in instances:
            text, index = instance["tokens"], instance["metadata"]["predicate_index"]
            # AllenNLP's input reduction removes tokens and their tags, but not their marks.
            if len(text) < len(instance["predicate_indicator"]):
                marks = [int(token.idx == index) for token in text]
                instance.add_field("predicate_indicator", SequenceLabelField(marks, text))
        return super().get_gradients(instances)

    def _instance(self, tokens: Sequence[Any], position: int) -> Instance:
        return self._dataset_reader.text_to_instance(
            [Token(token.text, idx=index) for index, token in enumerate(tokens)],
            position,
            lemma=tokens[position].lemma_ or None,
        )

    @cached_property
    def _tagger(self) -> Predictor:
        return load_predictor(self._tagger_file, self.cuda_device)

    def _read(self, lines: List[JsonDict]) -> List[Tuple[List[Any], List[int]]]:
        """Returns the tokens of each line, and the positions of its predicates."""
        sentences = [self._tokens(line) for line in lines]
        untagged = [s for line, s in zip(lines, sentences) if s and "predicates" not in line]
        if untagged and self._tagger_file:
            found = self._tagger.predict_batch_json([{"tokens": _words(s)} for s in untagged])
            for token, tag in zip(chain(*untagged), chain(*(each["tags"] for each in found))):
                token.tag_ = tag
        return [(s, self._predicates(line, s)) for line, s in zip(lines, sentences)]

    def _tokens(self, line: JsonDict, tag: bool = True) -> List[Any]:
        """Returns spaCy's tokens of a line, tagged if the spaCy model has a tagger."""
        if "tokens" in line:
            document = spacy.tokens.Doc(self._spacy.vocab, words=line["tokens"])
        else:
            document = self._spacy.make_doc(line["sentence"])
        for _, pipe in self._spacy.pipeline if tag else ():
            document = pipe(document)
        return [token for token in document if "tokens" in line or not token.is_space]

    def _predicates(
        self, line: JsonDict, tokens: Sequence[Any], location: str = "the sentence"
    ) -> List[int]:
        predicates = line.get("predicates")
        if predicates == "all":
            return list(range(len(tokens)))
        if predicates is not None:
            return _positions(predicates, _words(tokens), location)
        verbs = verb_positions(tokens)
        if verbs is None:
            raise ConfigurationError(
                f"To find verbs, expected the spaCy model {self._spacy_model!r} to tag words, "
                f"found no tags in {tokens[0].doc.text[:40]!r}. Name a model with a tagger, such "
                'as en_core_web_sm, or give the predicates, "predicates": [2].'
            )
        return verbs

    @overrides
    def _described(self, output: Dict[str, Any]) -> JsonDict:
        metadata, tags = output["metadata"], output["tags"]
        return {
            "tokens": metadata["words"],
            "predicate": metadata["predicate_index"],
            "lemma": metadata["lemma"],
            "tags": tags,
            "description": _description(metadata["words"], tags),
            _IS_LAST: metadata[_IS_LAST] if self._output_format == "conll" else None,
            "gold_tags": metadata["gold_tags"],
        }

    @overrides
    def _labels(self, instance: Instance, outputs: Dict[str, Any]) -> Dict[str, Field]:
        return {"tags": SequenceLabelField(outputs["tags"], instance["tokens"], ROLES)}

    @overrides
    def _for_scorer(self, outputs: JsonDict) -> str:
        if "frames" in outputs:
            return _propositions(outputs["tokens"], outputs["frames"])
        self._frames.append(outputs)
        if not outputs[_IS_LAST]:
            return ""
        frames, self._frames = self._frames, []
        return _propositions(outputs["tokens"], frames)


def _words(tokens: Sequence[Any]) -> List[str]:
    return [token.text for token in tokens]


def _positions(predicates: List[Union[int, str]], words: List[str], location: str) -> List[int]:
    """The positions of predicates, which are given as positions or as words."""
    found: List[int] = []
    for predicate in predicates:
        if isinstance(predicate, str):
            # A word that is given twice means two places.
            places = [n for n, word in enumerate(words) if word == predicate and n not in found]
        else:
            places = [predicate] if predicate < len(words) else []
        expected = f'"predicates" to be words or positions from 0 in {excerpt(" ".join(words))!r}'
        expect(places, location, expected, json.dumps(predicate))
        found.append(places[0])
    return sorted(set(found))


def _description(words: List[str], tags: List[str]) -> str:
    """`[ARG0: They] [V: play] [ARG1: chess]`."""
    pieces: List[str] = []
    for word, tag in zip(words, tags):
        if tag.startswith("I-"):
            pieces[-1] = f"{pieces[-1][:-1]} {word}]"
        else:
            pieces.append(word if tag == "O" else f"[{tag[2:]}: {word}]")
    return " ".join(pieces)


def _propositions(words: List[str], frames: List[JsonDict]) -> str:
    if not frames:
        return ""
    # In this format, a lemma has no spaces and is neither empty nor a dash.
    lemmas = ["".join(frame["lemma"].split()) for frame in frames]
    predicates = [
        (frame["predicate"], "verb" if lemma in ("", "-") else lemma)
        for frame, lemma in zip(frames, lemmas)
    ]
    return format_propositions(len(words), predicates, [frame["tags"] for frame in frames])
