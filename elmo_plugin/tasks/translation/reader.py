from typing import Any, Dict, Iterable, List, Optional

from allennlp.common.util import END_SYMBOL, START_SYMBOL
from allennlp.data import DatasetReader, Field, Instance, Token
from allennlp.data.fields import MetadataField, TextField
from allennlp.data.token_indexers import SingleIdTokenIndexer
from overrides import overrides

from elmo_plugin.corpora.parallel_text import read_sentence_pairs
from elmo_plugin.corpora.tokenizer import tokenize_with_spacy
from elmo_plugin.tasks.reader import TaskReader
from elmo_plugin.util.errors import ConfigurationError

#: The namespace of the words to translate into.
TARGET_WORDS = "target_tokens"


@DatasetReader.register("elmo-translation")
class TranslationReader(TaskReader):
    """
    Reads parallel text, one sentence per line; one instance per pair. The data path is the file of
    the source language; the translations are in the file beside it that is named after the target
    language: `train.de` for `train.en`. Sentences are split into words by spaCy's rules.

    # Parameters

    source_language, target_language : `str`, optional (default = `"en"`, `"de"`)
        Their codes, as in spaCy and in the names of the files.
    **kwargs : `Any`
        Those of `TaskReader`. The token indexers are for the source.

    # Raises

    `ValueError`
        If the files differ in their number of lines, or a sentence has no translation; the
        message names file and line.
    `ConfigurationError`
        If the name of the file does not end with the source language, or spaCy does not know a
        language.
    """

    text_fields = ("source",)

    def __init__(
        self, source_language: str = "en", target_language: str = "de", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._source_language = source_language
        self._target_language = target_language
        self._target_indexers = {"tokens": SingleIdTokenIndexer(TARGET_WORDS)}

    @overrides
    def _read(self, file_path: str) -> Iterable[Instance]:
        pairs = read_sentence_pairs(file_path, self._target_path(str(file_path)))
        for pair in self.shard_iterable(pairs):
            yield self.text_to_instance(self.tokens(pair.source), pair.target)

    def tokens(self, text: str) -> List[Token]:
        """The words of a raw text in the source language."""
        return [Token(token.text) for token in tokenize_with_spacy(text, self._source_language)]

    @overrides(check_signature=False)
    def text_to_instance(self, source: List[Token], target: Optional[str] = None) -> Instance:
        """
        # Parameters

        source : `List[Token]`
            The words of the sentence.
        target : `Optional[str]`
            Its translation, as raw text; `None` if unknown.
        """
        fields: Dict[str, Field] = {
            "source": TextField(source),
            "metadata": MetadataField(
                {"words": [token.text for token in source], "target": target}
            ),
        }
        if target is not None:
            words = [token.text for token in tokenize_with_spacy(target, self._target_language)]
            fields["target"] = TextField([Token(w) for w in (START_SYMBOL, *words, END_SYMBOL)])
        return Instance(fields)

    @overrides
    def apply_token_indexers(self, instance: Instance) -> None:
        super().apply_token_indexers(instance)
        if "target" in instance.fields:
            instance["target"].token_indexers = self._target_indexers

    def _target_path(self, path: str) -> str:
        for ending in ("", ".gz"):
            suffix = f".{self._source_language}{ending}"
            if path.endswith(suffix):
                return f"{path.removesuffix(suffix)}.{self._target_language}{ending}"
        raise ConfigurationError(
            f"elmo-translation: expected a path that ends with .{self._source_language}, found "
            f"{path}. The translations are read from the file that ends with "
            f".{self._target_language} beside it. Other languages: set `source_language` and "
            "`target_language` of the reader."
        )
