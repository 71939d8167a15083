from typing import Any, Dict, Iterable, Optional, Sequence

from allennlp.data import DatasetReader, Instance
from allennlp.data.fields import MetadataField
from overrides import overrides

from elmo_plugin.bilm.io.pretrained import given_options
from elmo_plugin.bilm.pretraining.text import Text, TextPath, check_decoding_errors
from elmo_plugin.util.errors import ConfigurationError


@DatasetReader.register("elmo-bilm")
class BilmReader(DatasetReader):
    """
    Says what a biLM is trained on: tokenised text, one sentence a line, and how its words become
    characters. The `elmo-bilm` data loader makes batches of it without going through instances;
    those exist for tools that want to see single sentences.

    # Parameters

    options : `Optional[Dict[str, Any]]`
        Options of the biLM, as in an options.json.
    options_file : `Optional[str]`
        File of options, instead of `options`. Default of both: `ELMO_OPTIONS`.
    max_tokens : `int`, optional (default = `500`)
        Longer lines are cut into sentences of that many words, so that no line, however long,
        decides how much memory a batch takes.
    decoding_errors : `str`, optional (default = `"strict"`)
        `strict` refuses text that is not UTF-8; `replace` reads each undecodable byte as U+FFFD.
    max_instances : `Optional[int]`, optional (default = `None`)
        Bounds the instances, not the batches.
    serialization_dir : `Optional[str]`
        Given by AllenNLP: where an archive is unpacked, which holds the options too.

    # Raises

    `ConfigurationError`
        If both `options` and `options_file` are given, or if what they say is impossible.
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
        if max_tokens < 1:
            raise ConfigurationError(f"Expected `max_tokens` of at least 1, found {max_tokens}.")
        parsed = given_options(options, options_file, serialization_dir, "dataset_reader")
        check_decoding_errors(decoding_errors)
        self.options = parsed
        self.max_tokens = max_tokens
        self.decoding_errors = decoding_errors

    @overrides
    def _read(self, file_path: TextPath) -> Iterable[Instance]:
        text = Text(file_path, max_tokens=self.max_tokens, decoding_errors=self.decoding_errors)
        for words in text.sentences():
            yield self.text_to_instance(words)

    @overrides(check_signature=False)
    def text_to_instance(self, tokens: Sequence[str]) -> Instance:
        """
        # Parameters

        tokens : `Sequence[str]`
            Words of a sentence.

        # Returns

        `Instance`
            With one field, `words`, which is kept as it is.
        """
        return Instance({"words": MetadataField(list(tokens))})
