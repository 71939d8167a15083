from typing import Any, Dict, Iterable, Optional, Sequence

from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import MetadataField
from overrides import overrides

from elmo_plugin.bilm.files.load import read_options
from elmo_plugin.bilm.pretraining.text import Text, TextPath, decoded
from elmo_plugin.util.errors import check_least


@DatasetReader.register("elmo-bilm")
class BilmReader(DatasetReader):
    """
    Reads the training text of a biLM: tokenised, one sentence per line. The data loader `elmo-bilm`
    takes only the settings of this reader; its instances are for tools that show sentences.

    Lines of more than `max_tokens` words are cut into sentences of this length, which bounds the
    memory of a batch. For the options see `BilmModel`, for `decoding_errors` see `DecodedPath`.
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
        self.options = read_options(options_file, serialization_dir, options)
        self._max_tokens = max_tokens
        self._decoding_errors = decoding_errors

    def text(self, data_path: TextPath, shuffle_lines: int = 1) -> Text:
        """The text at a path, read with the settings of this reader."""
        return Text(decoded(data_path, self._decoding_errors), shuffle_lines, self._max_tokens)

    @overrides
    def _read(self, file_path: TextPath) -> Iterable[Instance]:
        for words in self.text(file_path).sentences():
            yield self.text_to_instance(words)

    @overrides(check_signature=False)
    def text_to_instance(self, tokens: Sequence[str]) -> Instance:
        return Instance({"words": MetadataField(list(tokens))})
