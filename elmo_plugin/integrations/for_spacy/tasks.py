import json
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Tuple

import spacy
from spacy.language import Language
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span, Token
from spacy.training import Example
from thinc.util import get_torch_default_device

import elmo_plugin
from elmo_plugin.corpora.tag_spans import tags_to_spans
from elmo_plugin.corpora.tokenizer import verb_positions
from elmo_plugin.elmo.token_batches import token_batches
from elmo_plugin.integrations.for_spacy.pipes import BatchPipe, sentences_of
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.errors import ConfigurationError, check_one_of
from elmo_plugin.util.files import TAGGER, shipped_archives
from elmo_plugin.util.weights import save_atomically

_ARCHIVE = "model.tar.gz"
# Of entity types that displaCy does not know: its colours of PERSON and NORP.
_COLOURS = {"PER": "#aa9cfc", "MISC": "#c887fb"}
# Maximum number of sentences, or documents, in a batch; see also `token_batches`.
_BATCH_SIZE = 64
_VERB = "V"
# Of `doc.spans`, before the number of a cluster: the name that other components of spaCy use.
_CLUSTER = "coref_clusters_"

#: One input of a predictor: a sentence, or the sentences of a document.
Text = List[List[Token]]
#: Each text of a document, and what the predictor writes for it.
Predictions = List[Tuple[Text, Dict[str, Any]]]


class Frame(NamedTuple):
    """A predicate and its arguments, in `doc._.srl`."""

    #: Its label is `V`.
    verb: Span
    #: In the order of the text. The labels are roles, such as `ARG0`.
    arguments: List[Span]


def _frames(doc: Doc) -> List[Frame]:
    spans = [[Span(doc, *span) for span in of_frame] for of_frame in doc.user_data.get("srl", ())]
    return [Frame(verb, arguments) for verb, *arguments in spans]


def _clusters(doc: Doc) -> List[List[Span]]:
    return [list(doc.spans[key]) for key in _cluster_keys(doc)]


def _cluster_keys(doc: Doc) -> List[str]:
    return [key for key in doc.spans if key.startswith(_CLUSTER)]


# `user_data` holds numbers, because spaCy cannot store spans there.
Doc.set_extension("srl", getter=_frames, force=True)
Doc.set_extension("coref_clusters", getter=_clusters, force=True)
Doc.set_extension("elmo_task", default=(), force=True)
spacy.registry.displacy_colors.register("elmo_ner", func=_COLOURS)


@Language.factory("elmo_task", assigns=["doc._.elmo_task"])
class ElmoTask(BatchPipe):
    """
    The component `elmo_task`: predictions of a trained model of any task.

    `doc._.elmo_task` is a list of what the predictor writes for each sentence, or for the document
    if the predictor reads documents. White-space tokens are left out. A document without sentence
    boundaries is one sentence.

    # Parameters

    archive : `str`
        An archive for `elmo_plugin.load_archive`, which `add_pipe` reads; see also
        `BatchPipe.check`. By default, it is the model of the component's task that comes with the
        project. A `ConfigurationError` is raised if there is none, or if the archive cannot be
        read, is of another task, or reads pairs of texts.
    """

    #: The registered name of the task; empty for any.
    task: str = ""

    def __init__(self, nlp: Language, name: str, archive: str = "") -> None:
        super().__init__(name)
        self._file = archive
        # Pairs of texts are refused, too.
        self.check(lambda: self.predictor.line_of([["word"]]))

    @cached_property
    def predictor(self) -> Any:
        """The predictor, loaded at the first access."""
        file = self._file or shipped_archives().get(self.task.removeprefix("elmo-"))
        if file is None:
            raise ConfigurationError(
                f"{self.name}: no trained model of {self.task or 'any task'} comes with the "
                "project. Set `archive` to one that `allennlp train` wrote."
            )
        device = get_torch_default_device()
        number = (device.index or 0) if device.type == "cuda" else -1
        predictor = elmo_plugin.load_predictor(file, number)
        model: Any = predictor._model
        found = model.default_predictor
        if not self.reads(model):
            raise ConfigurationError(
                f"{self.name}: expected an archive of {self.task}, found {file} of "
                f"{found or type(model).__name__}. Correct `archive`."
            )
        return predictor

    def reads(self, model: Any) -> bool:
        """Whether the component can show what a model predicts."""
        return self.task in ("", model.default_predictor)

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Predicts in batches of sentences, or documents, of similar length."""
        predictor = self.predictor
        predictions: Dict[int, Dict[str, Any]] = {}
        of_docs: List[List[Text]] = []
        for doc in docs:
            sentences = sentences_of(doc)
            if predictor.reads_documents:
                of_docs.append([sentences] if sentences else [])
            else:
                of_docs.append([[tokens] for tokens in sentences])
        texts = [text for own in of_docs for text in own]
        lengths = [sum(map(len, text)) for text in texts]
        order = sorted(range(len(texts)), key=lengths.__getitem__)
        for batch in token_batches([lengths[number] for number in order], _BATCH_SIZE):
            lines = [self.line_of(texts[number]) for number in order[batch]]
            predictions.update(zip(order[batch], predictor.predict_batch_json(lines)))
        in_order = (predictions[number] for number in range(len(texts)))
        for doc, own in zip(docs, of_docs):
            self.set(doc, list(zip(own, in_order)))

    def line_of(self, text: Text) -> Dict[str, Any]:
        return self.predictor.line_of([[token.text for token in tokens] for tokens in text])

    def set(self, doc: Doc, predictions: Predictions) -> None:
        """Stores the predictions in their document."""
        doc._.elmo_task = [dict(prediction) for _, prediction in predictions]

    def to_disk(self, path: Any, *, exclude: Any = ()) -> None:
        """Writes the trained model as `model.tar.gz`, which `allennlp predict` reads, too."""
        predictor = self.predictor
        # Not at the top: AllenNLP takes seconds to import.
        from allennlp.common.meta import Meta
        from allennlp.models.archival import archive_model

        with TemporaryDirectory() as folder:
            Path(folder, "config.json").write_text(json.dumps(predictor.config, indent=2))
            predictor._model.vocab.save_to_files(str(Path(folder, "vocabulary")))
            save_atomically(predictor._model.state_dict(), Path(folder, "best.th"))
            Meta.new().to_file(Path(folder, "meta.json"))
            with atomic_write(Path(path, _ARCHIVE)) as unfinished:
                archive_model(folder, archive_path=unfinished)

    def from_disk(self, path: Any, *, exclude: Any = ()) -> "ElmoTask":
        self._file = str(Path(path, _ARCHIVE))
        self.__dict__.pop("predictor", None)
        # Loaded now, because the folder may be temporary.
        _ = self.predictor
        return self


@Language.factory("elmo_ner", assigns=["doc.ents", "token.ent_iob", "token.ent_type"])
class ElmoNer(ElmoTask):
    """
    The component `elmo_ner`: named entities in `doc.ents`, or the spans of an `elmo-tagger`. The
    document keeps its entities; new ones that overlap with them are dropped. For the parameters see
    `ElmoTask`.
    """

    task = "elmo-ner"

    def reads(self, model: Any) -> bool:
        return getattr(model, "finds_spans", False)

    def set(self, doc: Doc, predictions: Predictions) -> None:
        taken = {token.i for entity in doc.ents for token in entity}
        new = [
            Span(doc, *_positions(tokens, entity["start"], entity["end"]), entity["type"])
            for (tokens,), prediction in predictions
            for entity in prediction["entities"]
        ]
        doc.ents = [*doc.ents, *(s for s in new if taken.isdisjoint(range(s.start, s.end)))]

    def score(self, examples: Iterable[Example], **settings: Any) -> Dict[str, Any]:
        """Precision, recall and F1 of entities, for `nlp.evaluate` and `spacy evaluate`."""
        return get_ner_prf(examples)


@Language.factory("elmo_srl", assigns=["doc._.srl"])
class ElmoSrl(ElmoTask):
    """
    The component `elmo_srl`: semantic roles in `doc._.srl`, a list of `Frame`s.

    # Parameters

    archive
        See `ElmoTask`.
    predicates : `str`
        The tokens whose arguments are labelled: `verbs` or `all`. Verbs are tokens that an earlier
        component tagged: `token.tag_` begins with `VB`, or without tags, `token.pos_` is `VERB` or
        `AUX`. Of a document with neither, the tagger that comes with the project finds them; if it
        is not installed, a `ConfigurationError` is raised.
    """

    task = "elmo-srl"

    def __init__(
        self, nlp: Language, name: str, archive: str = "", predicates: str = "verbs"
    ) -> None:
        check_one_of(("verbs", "all"), predicates=predicates)
        self._predicates = predicates
        super().__init__(nlp, name, archive)

    def line_of(self, text: Text) -> Dict[str, Any]:
        line = super().line_of(text)
        if self._predicates == "all":
            return {**line, "predicates": "all"}
        (tokens,) = text
        verbs = verb_positions(tokens)
        if verbs is not None:
            return {**line, "predicates": verbs}
        if TAGGER in shipped_archives():
            # The predictor finds them.
            return line
        raise ConfigurationError(
            f"{self.name}: expected a document with tags, to find its verbs, found one without: "
            f"{tokens[0].doc.text[:40]!r}. Add a tagger before this component, or set "
            "`predicates` to 'all'."
        )

    def set(self, doc: Doc, predictions: Predictions) -> None:
        doc.user_data["srl"] = []
        for (tokens,), prediction in predictions:
            for frame in prediction["frames"]:
                verb = frame["predicate"]
                spans = [(*_positions(tokens, verb, verb), _VERB)]
                for found in tags_to_spans(frame["tags"]):
                    if found.label != _VERB:
                        spans.append((*_positions(tokens, found.start, found.end), found.label))
                doc.user_data["srl"].append(spans)


@Language.factory("elmo_coref", assigns=["doc.spans", "doc._.coref_clusters"])
class ElmoCoref(ElmoTask):
    """
    The component `elmo_coref`: coreference. `doc.spans["coref_clusters_1"]` and so on are the
    clusters, with spans in the order of the text; `doc._.coref_clusters` is the list of them. For
    the parameters see `ElmoTask`.
    """

    task = "elmo-coref"

    def set(self, doc: Doc, predictions: Predictions) -> None:
        for key in _cluster_keys(doc):
            del doc.spans[key]
        clusters = [
            [
                Span(doc, *_positions(sentences[each["sentence"]], each["start"], each["end"]))
                for each in cluster
            ]
            for sentences, prediction in predictions
            for cluster in prediction["clusters"]
        ]
        for number, cluster in enumerate(clusters, start=1):
            doc.spans[f"{_CLUSTER}{number}"] = cluster


def _positions(tokens: Sequence[Token], first: int, last: int) -> Tuple[int, int]:
    """Start and end of the `Span` from token `first` to token `last`, both included."""
    return tokens[first].i, tokens[last].i + 1
