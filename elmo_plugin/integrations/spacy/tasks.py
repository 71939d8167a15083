from typing import Any, Dict, Iterable, List, NamedTuple, Sequence, Tuple

from spacy.language import Language
from spacy.scorer import get_ner_prf
from spacy.tokens import Doc, Span, Token
from spacy.training import Example

from elmo_plugin.corpora.tag_spans import tags_to_spans
from elmo_plugin.corpora.tokenizer import verb_positions
from elmo_plugin.integrations.spacy.archive_pipe import ArchivePipe
from elmo_plugin.integrations.spacy.pipe import sentences_of
from elmo_plugin.util.errors import ConfigurationError, check_one_of

_PREDICATES = ("verbs", "all")
_VERB = "V"


class Frame(NamedTuple):
    """A predicate and its arguments, in `doc._.srl`."""

    #: Its label is `V`.
    verb: Span
    #: In the order of the text; their labels are the roles, such as `ARG0`.
    arguments: List[Span]


def _frames(doc: Doc) -> List[Frame]:
    spans = [[Span(doc, *span) for span in of_frame] for of_frame in doc.user_data.get("srl", ())]
    return [Frame(verb, arguments) for verb, *arguments in spans]


def _clusters(doc: Doc) -> List[List[Span]]:
    clusters = doc.user_data.get("coref_clusters", ())
    return [[Span(doc, *span) for span in cluster] for cluster in clusters]


# `user_data` has numbers, because a document with spans in it could not be stored.
Doc.set_extension("srl", getter=_frames, force=True)
Doc.set_extension("coref_clusters", getter=_clusters, force=True)


@Language.factory("elmo_ner", assigns=["doc.ents", "token.ent_iob", "token.ent_type"])
class ElmoNer(ArchivePipe):
    """
    The component `elmo_ner`: named entities, in `doc.ents`. Keeps the entities that the document
    already has, and leaves out those that overlap with them. For the parameters see `ArchivePipe`.
    """

    task = "elmo-ner"

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Adds the entities of documents."""
        sentences = [tokens for doc in docs for tokens in sentences_of(doc)]
        lines = [{"tokens": _texts(tokens)} for tokens in sentences]
        predictions = self.predict(lines, list(map(len, sentences)))
        # By identity, because documents with the same text are different objects.
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


@Language.factory("elmo_srl", assigns=["doc._.srl"])
class ElmoSrl(ArchivePipe):
    """
    The component `elmo_srl`: semantic roles, in `doc._.srl`, a list of `Frame`s.

    # Parameters

    nlp, name, archive
        See `ArchivePipe`.
    predicates : `str`, optional (default = `"verbs"`)
        The tokens whose arguments are labelled: those that a component before this one has tagged
        as verbs (`token.tag_` begins with `VB`, or without tags, `token.pos_` is `VERB` or `AUX`),
        or `all`.

    # Raises

    `ConfigurationError`
        If `predicates` is neither; when a document comes, if it has no tags to find verbs by. See
        also `ArchivePipe`.
    """

    task = "elmo-srl"

    def __init__(
        self, nlp: Language, name: str, archive: str = "", predicates: str = "verbs"
    ) -> None:
        super().__init__(nlp, name, archive)
        check_one_of(_PREDICATES, predicates=predicates)
        self._predicates = predicates

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Sets the frames of documents."""
        sentences = [tokens for doc in docs for tokens in sentences_of(doc)]
        lines = [
            {"tokens": _texts(tokens), "predicates": self._predicate_positions(tokens)}
            for tokens in sentences
        ]
        predictions = self.predict(lines, list(map(len, sentences)))
        for doc in docs:
            doc.user_data["srl"] = []
        for tokens, prediction in zip(sentences, predictions):
            for frame in prediction["frames"]:
                predicate = frame["predicate"]
                spans = [(*_positions(tokens, predicate, predicate), _VERB)]
                for found in tags_to_spans(frame["tags"]):
                    if found.label != _VERB:
                        spans.append((*_positions(tokens, found.start, found.end), found.label))
                tokens[0].doc.user_data["srl"].append(spans)

    def _predicate_positions(self, tokens: List[Token]) -> List[int]:
        """The positions of the predicates in the sentence, from 0."""
        if self._predicates == "all":
            return list(range(len(tokens)))
        verbs = verb_positions(tokens)
        if verbs is None:
            raise ConfigurationError(
                f"{self.name}: expected a document with tags, to find its verbs, found one "
                f"without: {tokens[0].doc.text[:40]!r}. Add a tagger before this component, or set "
                "`predicates` to 'all'."
            )
        return verbs


@Language.factory("elmo_coref", assigns=["doc._.coref_clusters"])
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
                    _positions(sentences[mention["sentence"]], mention["start"], mention["end"])
                    for mention in cluster
                ]
                for cluster in prediction["clusters"]
            ]


def _texts(tokens: Sequence[Token]) -> List[str]:
    return [token.text for token in tokens]


def _positions(tokens: Sequence[Token], first: int, last: int) -> Tuple[int, int]:
    """Start and end of the `Span` from one token to another, both included."""
    return tokens[first].i, tokens[last].i + 1
