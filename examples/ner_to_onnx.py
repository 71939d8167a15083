"""
Writes a model of named entities, with ELMo, up to the scores of its tags, as a graph for ONNX
Runtime, and compares both:

    python examples/ner_to_onnx.py ner.onnx
    python examples/ner_to_onnx.py my_ner.pt2 --archive out/ner_elmo/model.tar.gz

The graph reads what the model's indexers give, int64, 0 at padding at the end of sentences:
`elmo_tokens` (batch, length, 50), character ids of the biLM; `characters` (batch, length, 50) and
`words` (batch, length), ids of the model's vocabulary, so words are cut to 50 characters. It
returns `scores` (batch, length, number of tags) and `mask` (batch, length). The best legal sequence
of tags is then to be found by the Viterbi algorithm: `elmo_plugin.modules.viterbi` has ours.

With the shipped model of named entities, the largest difference of a score is 7e-6.
"""

import argparse
from typing import Any, Dict, Iterable, List, Tuple

import torch
from allennlp.data import Batch, Token

from elmo_plugin import load_task
from elmo_plugin.elmo.exported import export_model

LONGEST_WORD = 50
SENTENCES = [
    ["Barack", "Obama", "was", "born", "in", "Honolulu", "."],
    ["The", "World", "Bank", "is", "in", "Washington"],
    ["Rain"],
]


class Scores(torch.nn.Module):
    """The model up to its conditional random field, with tensors as arguments."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model
        # AllenNLP's dropout cannot be recorded. In evaluation it changes nothing.
        model.dropout = torch.nn.Identity()

    def forward(
        self, elmo_tokens: torch.Tensor, characters: torch.Tensor, words: torch.Tensor
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        return self.model.emissions(
            {
                "elmo": {"elmo_tokens": elmo_tokens},
                "characters": {"token_characters": characters},
                "words": {"tokens": words},
            }
        )


def inputs_of(predictor: Any, sentences: Iterable[List[str]]) -> Dict[str, torch.Tensor]:
    """The inputs of the graph for tokenised sentences."""
    reader, model = predictor._dataset_reader, predictor._model
    instances = [reader.text_to_instance(list(map(Token, words))) for words in sentences]
    for instance in instances:
        reader.apply_token_indexers(instance)
    batch = Batch(instances)
    batch.index_instances(model.vocab)
    tokens = batch.as_tensor_dict()["tokens"]
    characters = tokens["characters"]["token_characters"][..., :LONGEST_WORD]
    missing = LONGEST_WORD - characters.size(-1)
    return {
        "elmo_tokens": tokens["elmo"]["elmo_tokens"],
        "characters": torch.nn.functional.pad(characters, (0, missing)),
        "words": tokens["words"]["tokens"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("output", metavar="OUT", help="file ending in .onnx or .pt2")
    parser.add_argument("--archive", default="ner", help="default: the shipped model")
    arguments = parser.parse_args()
    predictor = load_task(arguments.archive)
    scores = Scores(predictor._model).eval()
    inputs = inputs_of(predictor, SENTENCES)
    export_model(scores, arguments.output, inputs, ["scores", "mask"])
    with torch.no_grad():
        expected, mask = scores(*inputs.values())
    if arguments.output.endswith(".onnx"):
        from onnxruntime import InferenceSession

        arrays = {name: ids.numpy() for name, ids in inputs.items()}
        found = torch.from_numpy(InferenceSession(arguments.output).run(None, arrays)[0])
    else:
        found = torch.export.load(arguments.output).module()(*inputs.values())[0]
    print(f"largest difference: {(found - expected)[mask].abs().max():.1e}")


if __name__ == "__main__":
    main()
