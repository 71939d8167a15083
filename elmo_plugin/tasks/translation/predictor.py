from typing import Any, Dict, List

from allennlp.common.util import JsonDict
from allennlp.predictors import Predictor
from overrides import overrides

from elmo_plugin.corpora.tokenizer import words_of_line
from elmo_plugin.tasks.predictor import SentencePredictor


@Predictor.register("elmo-translation")
class TranslationPredictor(SentencePredictor):
    """
    Translates sentences.

    A line of input is JSON: `{"sentence": "A dog runs."}`, tokenised by spaCy's rules, or
    `{"tokens": ["A", …]}`. With `--use-dataset-reader` the input is a file of parallel text, see
    `TranslationReader`.

    The output has for each sentence its `tokens`, the `translation`, whose words are joined by
    spaces, and the `reference`, if known. With `output_format` `text` it is a translation per line.
    For the parameters see `TaskPredictor`.
    """

    example = '{"sentence": "A dog runs."}'
    output_formats = ("json", "text")

    @overrides
    def _words(self, line: JsonDict, location: str) -> List[str]:
        sentence = line.get("sentence")
        words: List[str] = []
        if isinstance(sentence, str) and "tokens" not in line:
            words = [token.text for token in self._dataset_reader.tokens(sentence)]
        return words or words_of_line(line, location)

    @overrides
    def _described(self, output: Dict[str, Any]) -> JsonDict:
        metadata = output["metadata"]
        return {
            "tokens": metadata["words"],
            "translation": output["translation"],
            "reference": metadata["target"],
        }

    @overrides
    def _for_scorer(self, outputs: JsonDict) -> str:
        return f"{outputs['translation']}\n"
