import json
from typing import Any, Dict, List, Optional, Sequence

import spacy
from allennlp.common.util import JsonDict, sanitize
from allennlp.data import DatasetReader, Instance, Token
from allennlp.models import Model
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.conll2012 import format_propositions
from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.util.errors import ConfigurationError

OUTPUT_FORMATS = ("json", "conll")
# Predicates labelled at once, however few lines they come from.
_MIN_BATCH_SIZE = 32
_EXAMPLE = '{"sentence": "The play began.", "predicates": [2]}'


@Predictor.register("elmo-srl")
class SrlPredictor(Predictor):
    """
    Labels the predicates of sentences.

    A line of input is JSON: `{"sentence": "The play began."}` or `{"tokens": ["The", …]}`, with
    `"predicates": [2]` for the positions of the predicates, `"predicates": "all"` to ask for every
    token, or no `predicates`, which are then the verbs that a spaCy model finds. With
    `--use-dataset-reader` the input is a CoNLL-2012 file.

    # Parameters

    model : `Model`
    dataset_reader : `DatasetReader`
    spacy_model : `Optional[str]`, optional (default = `None`)
        Name or path of a spaCy pipeline with a tagger, to find verbs with; it tokenises text, too.
        Without one, text is tokenised by spaCy's English rules, which divide words with hyphens as
        OntoNotes does.
    output_format : `str`, optional (default = `"json"`)
        `json` lines, or `conll`: the propositions that `srl-eval.pl` reads. Sentences without a
        predicate are left out, as `python -m elmo_plugin.corpora.conll2012` leaves them out of
        the gold propositions.

    # Raises

    `ConfigurationError`
        If the spaCy model is not installed, or the output format is none of these.
    """

    def __init__(
        self,
        model: Model,
        dataset_reader: DatasetReader,
        spacy_model: Optional[str] = None,
        output_format: str = "json",
    ) -> None:
        super().__init__(model, dataset_reader)
        if output_format not in OUTPUT_FORMATS:
            raise ConfigurationError(
                f"Expected `output_format` to be one of {OUTPUT_FORMATS}, found {output_format!r}."
            )
        self._finds_verbs = spacy_model is not None
        self._spacy = _load_spacy(spacy_model) if spacy_model else spacy.blank("en")
        self._output_format = output_format
        # CoNLL output waits here until a sentence's last predicate is done.
        self._frames: List[Dict[str, Any]] = []
        self._num_lines = 0

    def predict(self, sentence: str, predicates: Any = None) -> JsonDict:
        """
        Labels one sentence; see the class for `predicates` and `predict_json` for the result.
        """
        return self.predict_json({"sentence": sentence, "predicates": predicates})

    @overrides
    def predict_json(self, inputs: JsonDict) -> JsonDict:
        """
        # Returns

        `JsonDict`
            `tokens`, and `frames`: for each predicate its `predicate` (position), `lemma`, BIO
            `tags` and a readable `description`.

        # Raises

        `ValueError`
            If the line has neither `sentence` nor `tokens`, or names a predicate that the
            sentence does not have.
        """
        return self.predict_batch_json([inputs])[0]

    @overrides
    def predict_batch_json(self, inputs: List[JsonDict]) -> List[JsonDict]:
        sentences = [self._instances(_checked(line)) for line in inputs]
        instances = [instance for sentence in sentences for instance in sentence["instances"]]
        batch_size = max(len(inputs), _MIN_BATCH_SIZE)
        frames: List[JsonDict] = []
        for first in range(0, len(instances), batch_size):
            frames += self.predict_batch_instance(instances[first : first + batch_size])
        outputs, remaining = [], iter(frames)
        for sentence in sentences:
            own = [next(remaining) for _ in sentence["instances"]]
            for frame in own:
                del frame["tokens"], frame["is_last_of_sentence"]
            outputs.append({"tokens": sentence["tokens"], "frames": own})
        return outputs

    @overrides
    def predict_instance(self, instance: Instance) -> JsonDict:
        return self.predict_batch_instance([instance])[0]

    @overrides
    def predict_batch_instance(self, instances: List[Instance]) -> List[JsonDict]:
        """
        # Returns

        `List[JsonDict]`
            For each predicate its `tokens`, `predicate`, `lemma`, `tags` and `description`, and
            whether it `is_last_of_sentence`.
        """
        outputs = self._model.forward_on_instances(instances)
        return [sanitize(_frame(output["metadata"], output["tags"])) for output in outputs]

    @overrides
    def dump_line(self, outputs: JsonDict) -> str:
        if self._output_format == "json":
            return json.dumps(outputs, ensure_ascii=False) + "\n"
        if "frames" in outputs:
            return _propositions(outputs["tokens"], outputs["frames"])
        if self._frames and self._frames[-1]["tokens"] != outputs["tokens"]:
            # The reader was stopped within a sentence.
            self._frames.clear()
        self._frames.append(outputs)
        if not outputs["is_last_of_sentence"]:
            return ""
        frames, self._frames = self._frames, []
        return _propositions(outputs["tokens"], frames)

    @overrides
    def load_line(self, line: str) -> JsonDict:
        self._num_lines += 1
        place = f"non-empty line {self._num_lines}"
        inputs = parse_object(line, place, _EXAMPLE)
        try:
            predicates = _checked(inputs).get("predicates")
            if isinstance(predicates, list):
                _check_positions(predicates, self._words(inputs))
            return inputs
        except ValueError as error:
            raise ValueError(
                f"{place}: {error}, as in {_EXAMPLE}; found {line.strip()[:80]!r}."
            ) from error

    def _instances(self, line: JsonDict) -> Dict[str, Any]:
        tokens = self._tokens(line)
        words = [token.text for token in tokens]
        predicates = self._predicates(line, tokens)
        instances = [
            self._dataset_reader.text_to_instance(
                [Token(word) for word in words], position, lemma=tokens[position].lemma_ or None
            )
            for position in predicates
        ]
        for instance in instances:
            self._dataset_reader.apply_token_indexers(instance)
        return {"tokens": words, "instances": instances}

    def _words(self, line: JsonDict) -> List[str]:
        if "tokens" in line:
            return line["tokens"]
        document = self._spacy.make_doc(line["sentence"])
        return [token.text for token in document if not token.is_space]

    def _tokens(self, line: JsonDict) -> List[Any]:
        """spaCy's tokens of a line, tagged if verbs can be found."""
        if "tokens" in line:
            document = spacy.tokens.Doc(self._spacy.vocab, words=line["tokens"])
        else:
            document = self._spacy.make_doc(line["sentence"])
        for _, pipe in self._spacy.pipeline:
            document = pipe(document)
        return [token for token in document if "tokens" in line or not token.is_space]

    def _predicates(self, line: JsonDict, tokens: Sequence[Any]) -> List[int]:
        predicates = line.get("predicates")
        if predicates == "all":
            return list(range(len(tokens)))
        if predicates is not None:
            _check_positions(predicates, [token.text for token in tokens])
            return sorted(set(predicates))
        if not self._finds_verbs:
            raise ConfigurationError(
                "Finding the verbs needs a spaCy model with a tagger: give its name or path with "
                """--predictor-args '{"spacy_model": "en_core_web_sm"}', or say which tokens are """
                'predicates in every line: "predicates": [2], or "all".'
            )
        return [position for position, token in enumerate(tokens) if token.tag_.startswith("VB")]


def _check_positions(positions: List[int], words: List[str]) -> None:
    outside = [position for position in positions if not 0 <= position < len(words)]
    if outside:
        allowed = f"from 0 to {len(words) - 1}" if words else "of words, of which there are none"
        raise ValueError(
            f'expected "predicates" to be positions {allowed}, found {outside[0]} for {words}'
        )


def _checked(line: JsonDict) -> JsonDict:
    """
    The line, if it has text and asks for what can be given.

    # Raises

    `ValueError`
        If it does not.
    """
    if not ("sentence" in line or "tokens" in line):
        raise ValueError('expected an object with "sentence" or "tokens"')
    words = line.get("tokens", [line.get("sentence")])
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise ValueError('expected "sentence" to be text, or "tokens" a list of words')
    if "tokens" in line and "" in words:
        raise ValueError('expected "tokens" to hold no empty word')
    predicates = line.get("predicates")
    if predicates is not None and predicates != "all":
        if not isinstance(predicates, list) or any(
            type(number) is not int for number in predicates
        ):
            raise ValueError('expected "predicates" to be a list of whole numbers, or "all"')
    return line


def _load_spacy(spacy_model: str) -> Any:
    try:
        return spacy.load(spacy_model)
    except OSError:
        raise ConfigurationError(
            f"spaCy model {spacy_model!r} is not installed. Install it with `python -m spacy "
            f"download {spacy_model}`, give the path of one, or say which tokens are predicates."
        ) from None


def _frame(metadata: Dict[str, Any], tags: List[str]) -> JsonDict:
    return {
        "tokens": metadata["words"],
        "predicate": metadata["predicate_index"],
        "lemma": metadata["lemma"],
        "tags": tags,
        "description": _description(metadata["words"], tags),
        "is_last_of_sentence": metadata["is_last_of_sentence"],
    }


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
    # The format has no room for blanks in a lemma.
    predicates = [
        (frame["predicate"], "".join(frame["lemma"].split()).strip("-") or "verb")
        for frame in frames
    ]
    return format_propositions(len(words), predicates, [frame["tags"] for frame in frames])
