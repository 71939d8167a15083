from typing import Dict, Iterable, List, Optional

from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.fields import LabelField, MetadataField, TextField
from overrides import overrides

from elmo_plugin.corpora.snli import LABELS, read_pairs
from elmo_plugin.tasks.reader import TaskReader


@DatasetReader.register("elmo-snli")
class SnliReader(TaskReader):
    """
    Reads SNLI's JSON lines, one instance per pair in the order of the file. Skips pairs whose
    annotators reached no majority. Pairs without the label's field are read for prediction.
    """

    text_fields = ("premise", "hypothesis")

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        for pair in self.shard_iterable(read_pairs(file_path)):
            yield self.text_to_instance(
                [Token(word) for word in pair.premise],
                [Token(word) for word in pair.hypothesis],
                pair.label,
                pair_id=pair.pair_id,
            )

    @overrides(check_signature=False)
    def text_to_instance(
        self,
        premise: List[Token],
        hypothesis: List[Token],
        label: Optional[str] = None,
        *,
        pair_id: Optional[str] = None,
    ) -> Instance:
        """`label` is one of `LABELS`, or `None` if unknown."""
        fields: Dict[str, Field] = {
            "premise": TextField(premise),
            "hypothesis": TextField(hypothesis),
        }
        if label is not None:
            # Fixed indices: a corpus too small to have all labels must not change the model's size.
            fields["label"] = LabelField(LABELS.index(label), skip_indexing=True)
        fields["metadata"] = MetadataField(
            {
                "premise": [token.text for token in premise],
                "hypothesis": [token.text for token in hypothesis],
                "label": label,
                "pair_id": pair_id,
            }
        )
        return Instance(fields)
