from typing import Any, Dict, Iterable, List, Optional

from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.fields import LabelField, MetadataField, TextField
from overrides import overrides

from elmo_plugin.corpora.records import read_labelled_texts
from elmo_plugin.corpora.snli import LABELS, read_pairs
from elmo_plugin.tasks.reader import KnownLabelField, OwnDataReader


@DatasetReader.register("elmo-pairs")
class PairReader(OwnDataReader):
    """
    Reads labelled pairs of texts from `.csv`, `.tsv` and JSON lines, one instance per row. Rows
    without labels are read for prediction.

    # Parameters

    premise, hypothesis, label : `str`
        The columns of a row.
    """

    text_fields = ("premise", "hypothesis")

    def __init__(
        self,
        premise: str = "premise",
        hypothesis: str = "hypothesis",
        label: str = "label",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.columns, self.label_column = (premise, hypothesis), label

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        rows = read_labelled_texts(file_path, self.columns, self.label_column)
        for row in self.shard_iterable(self.part(rows, file_path)):
            yield self.text_to_instance(*map(self.tokens, row.texts), row.label)

    @overrides(check_signature=False)
    def text_to_instance(
        self,
        premise: List[Token],
        hypothesis: List[Token],
        label: Optional[str] = None,
        *,
        pair_id: Optional[str] = None,
    ) -> Instance:
        fields: Dict[str, Field] = {
            "premise": TextField(premise),
            "hypothesis": TextField(hypothesis),
        }
        if label is not None:
            fields["label"] = self.label_field(label)
        fields["metadata"] = MetadataField(
            {
                "premise": [token.text for token in premise],
                "hypothesis": [token.text for token in hypothesis],
                "label": label,
                "pair_id": pair_id,
            }
        )
        return Instance(fields)

    def label_field(self, label: str) -> LabelField:
        return KnownLabelField(label)


@DatasetReader.register("elmo-snli")
class SnliReader(PairReader):
    """
    Reads SNLI's JSON lines, one instance per pair in the order of the file. Skips pairs whose
    annotators reached no majority. Pairs without the label's field are read for prediction. Labels
    are `LABELS`.
    """

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        for pair in self.shard_iterable(self.part(read_pairs(file_path), file_path)):
            yield self.text_to_instance(
                [Token(word) for word in pair.premise],
                [Token(word) for word in pair.hypothesis],
                pair.label,
                pair_id=pair.pair_id,
            )

    @overrides
    def label_field(self, label: str) -> LabelField:
        # Fixed indices: a corpus too small to have all labels must not change the model's size.
        return LabelField(LABELS.index(label), skip_indexing=True)
