"""
Trains a small biLM in plain PyTorch, without AllenNLP:

    python examples/train_bilm.py TEXT OUT

TEXT is tokenised text, one sentence per line. Prints the training perplexity and the speed of
each epoch, and writes options.json, weights.hdf5, softmax.hdf5 and vocabulary.txt into OUT.
"""

import argparse
import json

import torch

from elmo_plugin import BilmOptions
from elmo_plugin.bilm.files.folders import check_export_folder, save_bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights
from elmo_plugin.bilm.pretraining.batches import BatchBuilder, SentenceBatches, TextPass
from elmo_plugin.bilm.pretraining.language_model import LanguageModel
from elmo_plugin.bilm.pretraining.text import Text
from elmo_plugin.bilm.vocabulary_file import count_and_choose

OPTIONS = {
    "char_cnn": {
        "activation": "relu",
        "embedding": {"dim": 16},
        "filters": [[1, 16], [2, 16], [3, 32], [4, 64]],
        "max_characters_per_token": 50,
        "n_characters": 262,
        "n_highway": 1,
    },
    "lstm": {
        "cell_clip": 3,
        "dim": 128,
        "n_layers": 2,
        "proj_clip": 3,
        "projection_dim": 32,
        "use_skip_connections": True,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Trains a small biLM with torch alone.")
    parser.add_argument("text", metavar="TEXT", help="tokenised text, one sentence per line")
    parser.add_argument("out", metavar="OUT", help="folder to write")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--tokens-per-batch", type=int, default=1024)
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()

    # Before the training, not after it.
    check_export_folder(args.out, force=False)
    torch.manual_seed(0)
    words, counts = zip(*count_and_choose(args.text, size=100_000, min_count=1))
    model = LanguageModel(BilmOptions.from_dict(OPTIONS), words, counts).to(args.device)
    ids = {word: number for number, word in enumerate(words)}
    builder = BatchBuilder(model.bilm.characters, ids)
    text = Text(args.text, max_tokens=500)
    optimizer = torch.optim.Adam(model.parameters(), lr=args.lr)
    for epoch in range(args.epochs):
        batching = SentenceBatches(args.tokens_per_batch)
        for batch in TextPass(text, batching, builder, seed=f"0:{epoch}").batches():
            batch = {
                name: value.to(args.device) if isinstance(value, torch.Tensor) else value
                for name, value in batch.items()
            }
            optimizer.zero_grad()
            model(**batch).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
            optimizer.step()
        print(json.dumps({"epoch": epoch, **model.get_metrics(reset=True)}), flush=True)
    softmax = SoftmaxWeights(model.softmax.weight, model.softmax.bias, list(words), list(counts))
    save_bilm(model.bilm, args.out, softmax)


if __name__ == "__main__":
    main()
