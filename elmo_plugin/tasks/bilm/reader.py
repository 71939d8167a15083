from typing import Any, Dict, Iterable, Optional, Sequence

from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import MetadataField
from overrides import overrides

from elmo_plugin.bilm.files.load import given_options
from elmo_plugin.bilm.pretraining.text import Text, TextPath, decoded
from elmo_plugin.util.errors import check_least


@DatasetReader.register("elmo-bilm")
class BilmReader(DatasetReader):
    """
    The training text of a biLM: tokenised, one sentence per line. The data loader `elmo-bilm`
    reads the text itself and takes only the settings of this reader; its instances are for tools
    that show sentences.

    # Parameters

    options, options_file : `Optional[Dict[str, Any]]`, `Optional[str]`
        See `BilmModel`.
    max_tokens : `int`, optional (default = `500`)
        Longer lines are cut into sentences of this number of words, which bounds the memory of a
        batch.
    decoding_errors : `str`, optional (default = `"strict"`)
        See `DecodedPath`.
    max_instances : `Optional[int]`, optional (default = `None`)
        Maximum number of instances; batches are not limited.
    serialization_dir : `Optional[str]`
        Given by AllenNLP: the folder of an unpacked archive, from which the options are read.
    """

    def __init__(
        self,
        options: Optional[Dict[str, Any]] = None,
        options_file: Optional[str] = None,
        max_tokens: int = 500,
        decoding_errors: str = "strict",
        max_instances: Optional[int] = None,
        serialization_dir: Optional[str] = None,
    ) -> None:
        super().__init__(max_instances=max_instances, serialization_dir=serialization_dir)
        check_least(1, max_tokens=max_tokens)
        self.options = given_options(options, options_file, serialization_dir, "dataset_reader")
        self._max_tokens = max_tokens
        self._decoding_errors = decoding_errors

    def text(self, data_path: TextPath, shuffle_lines: int = 1) -> Text:
        """The text at a path, read with the settings of this reader; see `Text`."""
        return Text(decoded(data_path, self._decoding_errors), shuffle_lines, self._max_tokens)

    @overrides
    def _read(self, file_path: TextPath) -> Iterable[Instance]:
        for words in self.text(file_path).sentences():
            yield self.text_to_instance(words)

    @overrides(check_signature=False)
    def text_to_instance(self, tokens: Sequence[str]) -> Instance:
        """The words of a sentence as a `MetadataField`."""
        return Instance({"words": MetadataField(list(tokens))})
