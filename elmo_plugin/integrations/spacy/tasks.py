from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Tuple

import torch
from spacy.language import Language
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span, Token
from spacy.training import Example
from thinc.util import get_torch_default_device

import elmo_plugin
from elmo_plugin.corpora.conll2003 import find_entities
from elmo_plugin.elmo.token_batches import token_batches
from elmo_plugin.integrations.spacy.pipe import BatchPipe, sentences_of
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.resources import shipped

_ARCHIVE = "model.tar.gz"
_PREDICATES = ("verbs", "all")
_VERB = "V"
# Sentences, or documents, that are predicted at once; see also `token_batches`.
_BATCH_SIZE = 64


class Frame(NamedTuple):
    """
    A predicate and its arguments, in `doc._.srl`.

    # Parameters

    verb : `Span`
        Its label is `V`.
    arguments : `List[Span]`
        In the order of the text; their labels are the roles, such as `ARG0`.
    """

    verb: Span
    arguments: List[Span]


def _frames(doc: Doc) -> List[Frame]:
    spans = [[Span(doc, *span) for span in of_frame] for of_frame in doc.user_data.get("srl", ())]
    return [Frame(verb, arguments) for verb, *arguments in spans]


def _clusters(doc: Doc) -> List[List[Span]]:
    clusters = doc.user_data.get("coref_clusters", ())
    return [[Span(doc, *span) for span in cluster] for cluster in clusters]


# A document can be stored with numbers in its `user_data`, but not with spans.
Doc.set_extension("srl", getter=_frames, force=True)
Doc.set_extension("coref_clusters", getter=_clusters, force=True)


class ArchivePipe(BatchPipe):
    """
    The base of the components that predict with the archive of a trained model. They read spaCy's
    tokens, but not those of white space. Each sentence is one for the model; without sentence
    boundaries, the whole document is.

    # Parameters

    name : `str`
        The name of the component in its pipeline.
    archive : `str`
        What `elmo_plugin.load_archive` reads, when the first document comes. Empty: the trained
        model of the task that comes with the project.

    # Raises

    `ConfigurationError`
        When the first document comes: if the archive cannot be read, or is of another task, or if
        none comes with the project.
    """

    #: The registered name of its task.
    task: str

    def __init__(self, name: str, archive: str) -> None:
        super().__init__(name)
        self._file = archive
        # AllenNLP's `Archive` and `Predictor`.
        self._archive: Any = None
        self._predictor: Any = None

    def load(self) -> Any:
        """The archive, which is read when it is first asked for."""
        if self._archive is None:
            device = get_torch_default_device()
            number = (device.index or 0) if device.type == "cuda" else -1
            archive = elmo_plugin.load_archive(self._file or self._shipped_file(), number)
            found = archive.model.default_predictor
            if found != self.task:
                raise ConfigurationError(
                    f"{self.name}: expected an archive of {self.task}, found {self._file} of "
                    f"{found or type(archive.model).__name__}. Correct `archive`."
                )
            # Not at the top: AllenNLP takes seconds to import.
            from allennlp.predictors import Predictor

            self._archive = archive
            self._predictor = Predictor.from_archive(archive)
        return self._archive

    def _shipped_file(self) -> str:
        task = self.task.removeprefix("elmo-")
        path = shipped(f"pretrained/tasks/{task}/model.tar.gz")
        if not path.exists():
            raise ConfigurationError(
                f"{self.name}: no trained model of {self.task} comes with the project. Set "
                "`archive` to one that `allennlp train` wrote."
            )
        return str(path)

    def predict(self, lines: List[Dict[str, Any]], lengths: List[int]) -> List[Dict[str, Any]]:
        """
        The predictions for inputs of the task's predictor, which are read in batches of similar
        length.

        # Parameters

        lines : `List[Dict[str, Any]]`
        lengths : `List[int]`
            The number of tokens of each.
        """
        self.load()
        order = sorted(range(len(lines)), key=lengths.__getitem__)
        predictions: Dict[int, Dict[str, Any]] = {}
        for batch in token_batches([lengths[number] for number in order], _BATCH_SIZE):
            inputs = [lines[number] for number in order[batch]]
            predictions.update(zip(order[batch], self._predictor.predict_batch_json(inputs)))
        return [predictions[number] for number in range(len(lines))]

    def to_disk(self, path: Any, *, exclude: Any = ()) -> None:
        """Writes the trained model as `model.tar.gz`, which `allennlp predict` reads, too."""
        archive = self.load()
        from allennlp.models.archival import archive_model

        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory() as folder:
            archive.config.to_file(str(Path(folder, "config.json")))
            archive.model.vocab.save_to_files(str(Path(folder, "vocabulary")))
            torch.save(archive.model.state_dict(), Path(folder, "best.th"))
            if archive.meta is not None:
                archive.meta.to_file(Path(folder, "meta.json"))
            archive_model(folder, archive_path=path / _ARCHIVE)

    def from_disk(self, path: Any, *, exclude: Any = ()) -> "ArchivePipe":
        """Reads what `to_disk` has written, in place of the archive that the settings name."""
        self._file, self._archive = str(Path(path, _ARCHIVE)), None
        # Loaded now, since the folder may be a temporary one.
        self.load()
        return self


class ElmoNer(ArchivePipe):
    """
    The component `elmo_ner`: named entities, in `doc.ents`. Entities that the document has before
    are kept, and those that overlap with them are left out. For the parameters see `ArchivePipe`.
    """

    task = "elmo-ner"

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Adds the entities of documents."""
        sentences = [tokens for doc in docs for tokens in sentences_of(doc)]
        lines = [{"tokens": _texts(tokens)} for tokens in sentences]
        predictions = self.predict(lines, list(map(len, sentences)))
        # A document that is given twice is another object each time.
        found: Dict[int, List[Span]] = {id(doc): [] for doc in docs}
        for tokens, prediction in zip(sentences, predictions):
            for entity in prediction["entities"]:
                span = _positions(tokens, entity["start"], entity["end"])
                found[id(tokens[0].doc)].append(Span(tokens[0].doc, *span, entity["type"]))
        for doc in docs:
            taken = {token.i for entity in doc.ents for token in entity}
            new = (s for s in found[id(doc)] if taken.isdisjoint(range(s.start, s.end)))
            doc.ents = [*doc.ents, *new]

    def score(self, examples: Iterable[Example], **settings: Any) -> Dict[str, Any]:
        """Precision, recall and F1 of the entities, for `nlp.evaluate` and `spacy evaluate`."""
        return get_ner_prf(examples)


class ElmoSrl(ArchivePipe):
    """
    The component `elmo_srl`: semantic roles, in `doc._.srl`, a list of `Frame`s.

    # Parameters

    name : `str`
    archive : `str`
        See `ArchivePipe`.
    predicates : `str`, optional (default = `"verbs"`)
        The tokens whose arguments are labelled: those that a component before this one has tagged
        as verbs (`token.tag_` begins with `VB`, or without tags, `token.pos_` is `VERB` or `AUX`),
        or `all`.

    # Raises

    `ConfigurationError`
        If `predicates` is neither; when a document comes, if its verbs are not tagged. Also see
        `ArchivePipe`.
    """

    task = "elmo-srl"

    def __init__(self, name: str, archive: str, predicates: str = "verbs") -> None:
        super().__init__(name, archive)
        if predicates not in _PREDICATES:
            raise ConfigurationError(
                f"{name}: expected `predicates` to be one of {_PREDICATES}, found {predicates!r}."
            )
        self._predicates = predicates

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Sets the frames of documents."""
        sentences = [tokens for doc in docs for tokens in sentences_of(doc)]
        lines = [
            {"tokens": _texts(tokens), "predicates": self._positions(tokens)}
            for tokens in sentences
        ]
        predictions = self.predict(lines, list(map(len, sentences)))
        for doc in docs:
            doc.user_data["srl"] = []
        for tokens, prediction in zip(sentences, predictions):
            for frame in prediction["frames"]:
                predicate = frame["predicate"]
                spans = [(*_positions(tokens, predicate, predicate), _VERB)]
                for found in find_entities(frame["tags"]):
                    if found.label != _VERB:
                        spans.append((*_positions(tokens, found.start, found.end), found.label))
                tokens[0].doc.user_data["srl"].append(spans)

    def _positions(self, tokens: List[Token]) -> List[int]:
        """Of the predicates, in the sentence."""
        if self._predicates == "all":
            return list(range(len(tokens)))
        doc = tokens[0].doc
        if doc.has_annotation("TAG"):
            return [n for n, token in enumerate(tokens) if token.tag_.startswith("VB")]
        if doc.has_annotation("POS"):
            return [n for n, token in enumerate(tokens) if token.pos_ in ("VERB", "AUX")]
        raise ConfigurationError(
            f"{self.name}: expected a document with tags, to find its verbs, found one without: "
            f"{doc.text[:40]!r}. Add a component that tags before this one, or set `predicates` to "
            "'all'."
        )


class ElmoCoref(ArchivePipe):
    """
    The component `elmo_coref`: coreference, in `doc._.coref_clusters`, a list of clusters, each a
    list of spans in the order of the text. For the parameters see `ArchivePipe`.
    """

    task = "elmo-coref"

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Sets the clusters of documents."""
        documents = [(doc, sentences) for doc in docs if (sentences := sentences_of(doc))]
        lines = [{"sentences": list(map(_texts, sentences))} for _, sentences in documents]
        lengths = [sum(map(len, sentences)) for _, sentences in documents]
        for doc in docs:
            doc.user_data["coref_clusters"] = []
        for (doc, sentences), prediction in zip(documents, self.predict(lines, lengths)):
            doc.user_data["coref_clusters"] = [
                [
                    _positions(sentences[place["sentence"]], place["start"], place["end"])
                    for place in cluster
                ]
                for cluster in prediction["clusters"]
            ]


@Language.factory(
    "elmo_ner",
    assigns=["doc.ents", "token.ent_iob", "token.ent_type"],
    default_config={"archive": ""},
)
def make_elmo_ner(nlp: Language, name: str, archive: str) -> ElmoNer:
    """What spaCy calls for `nlp.add_pipe("elmo_ner")`; see `ElmoNer`."""
    return ElmoNer(name, archive)


@Language.factory(
    "elmo_srl", assigns=["doc._.srl"], default_config={"archive": "", "predicates": "verbs"}
)
def make_elmo_srl(nlp: Language, name: str, archive: str, predicates: str) -> ElmoSrl:
    """What spaCy calls for `nlp.add_pipe("elmo_srl")`; see `ElmoSrl`."""
    return ElmoSrl(name, archive, predicates)


@Language.factory("elmo_coref", assigns=["doc._.coref_clusters"], default_config={"archive": ""})
def make_elmo_coref(nlp: Language, name: str, archive: str) -> ElmoCoref:
    """What spaCy calls for `nlp.add_pipe("elmo_coref")`; see `ElmoCoref`."""
    return ElmoCoref(name, archive)


def _texts(tokens: Sequence[Token]) -> List[str]:
    return [token.text for token in tokens]


def _positions(tokens: Sequence[Token], first: int, last: int) -> Tuple[int, int]:
    """Start and end, as of spaCy's spans, of what stands from one token to another."""
    return tokens[first].i, tokens[last].i + 1
