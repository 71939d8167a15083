"""
Tokens per second of training a biLM: ours against the same model composed of AllenNLP's parts, in
one run on the same batches.

    python benchmarks/pretrain.py $ELMO_DATA/lm/small/train.txt
    python benchmarks/pretrain.py TEXT --dim 4096 --projection-dim 512 --device cuda

AllenNLP's parts are `CnnHighwayEncoder`, `ElmoLstm` and `SampledSoftmaxLoss`, each direction with
half of the LSTM's output, both through one softmax. A step is what training does: loss, gradients,
clipping of their norm, Adagrad. All take turns; the median of the turns counts. `matrix products`
is how fast the products alone of our step would be, each over all tokens at once, in float32.
"""

import argparse
import json
import statistics
import time
import warnings
from typing import Any, Callable, Dict, List

import torch

warnings.filterwarnings("ignore")

from allennlp.modules.elmo_lstm import ElmoLstm  # noqa: E402
from allennlp.modules.sampled_softmax_loss import SampledSoftmaxLoss  # noqa: E402
from allennlp.modules.seq2vec_encoders import CnnHighwayEncoder  # noqa: E402
from allennlp.modules.token_embedders import Embedding, TokenCharactersEncoder  # noqa: E402
from allennlp.nn.util import move_to_device  # noqa: E402
from allennlp.training.optimizers import AdagradOptimizer  # noqa: E402

from elmo_plugin.bilm.pretraining import (  # noqa: E402
    BilmDataLoader,
    BilmReader,
    LanguageModel,
    SoftmaxVocabulary,
)
from elmo_plugin.training import FusedAdagrad  # noqa: E402

FILTERS = [[1, 32], [2, 32], [3, 64], [4, 128], [5, 256], [6, 512], [7, 1024]]
NUM_STEPS = 20
FLOOR = 2.2
Step = Callable[[Dict[str, Any]], None]


def bilm_options(arguments: argparse.Namespace) -> Dict[str, Any]:
    return {
        "char_cnn": {
            "activation": "relu",
            "embedding": {"dim": 16},
            "filters": FILTERS,
            "max_characters_per_token": 50,
            "n_characters": 262,
            "n_highway": arguments.n_highway,
        },
        "lstm": {
            "cell_clip": 3,
            "dim": arguments.dim,
            "n_layers": 2,
            "proj_clip": 3,
            "projection_dim": arguments.projection_dim,
            "use_skip_connections": True,
        },
    }


class AllenNlpBilm(torch.nn.Module):
    """The peer: reads every token's characters, as AllenNLP's language model does."""

    def __init__(self, arguments: argparse.Namespace, num_words: int) -> None:
        super().__init__()
        dim = arguments.projection_dim
        self.encoder = TokenCharactersEncoder(
            Embedding(16, num_embeddings=262),
            CnnHighwayEncoder(16, FILTERS, arguments.n_highway, dim),
        )
        self.lstm = ElmoLstm(dim, dim, arguments.dim, 2, True, 0.0, 3.0, 3.0)
        self.softmax = SampledSoftmaxLoss(num_words, dim, arguments.num_samples)

    def forward(self, characters: torch.Tensor, targets: List[torch.Tensor]) -> torch.Tensor:
        """
        # Parameters

        characters : `torch.Tensor`
            Shape `(batch_size, num_steps, 50)`.
        targets : `List[torch.Tensor]`
            Shape `(batch_size * num_steps,)`, per direction.
        """
        mask = torch.ones(characters.shape[:2], dtype=torch.bool, device=characters.device)
        outputs = self.lstm(self.encoder(characters), mask)[-1]
        halves = outputs.flatten(0, 1).chunk(2, dim=1)
        losses = [self.softmax(half, target) for half, target in zip(halves, targets)]
        return (losses[0] + losses[1]) / (2 * len(targets[0]))


def learning_step(model: torch.nn.Module, optimizer: Any, loss: Callable[..., Any]) -> Step:
    def step(batch: Dict[str, Any]) -> None:
        optimizer.zero_grad()
        loss(batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()

    return step


def our_step(arguments: argparse.Namespace, vocab: SoftmaxVocabulary, mixed: bool) -> Step:
    model = LanguageModel(
        vocab,
        bilm_options(arguments),
        num_samples=arguments.num_samples,
        dropout=0.0,
        mixed_precision=mixed,
    ).to(arguments.device)
    optimizer = FusedAdagrad(list(model.named_parameters()), lr=0.2, initial_accumulator_value=1.0)
    return learning_step(model, optimizer, lambda batch: model(**batch)["loss"])


def allennlp_step(arguments: argparse.Namespace, num_words: int) -> Step:
    model = AllenNlpBilm(arguments, num_words).to(arguments.device)
    optimizer = AdagradOptimizer(
        list(model.named_parameters()), lr=0.2, initial_accumulator_value=1.0
    )

    def loss(batch: Dict[str, Any]) -> torch.Tensor:
        def rows_first(values: torch.Tensor) -> torch.Tensor:
            return values.view(NUM_STEPS, -1, *values.shape[1:]).transpose(0, 1)

        characters = rows_first(batch["characters"][batch["forward_ids"]])
        targets = [
            rows_first(batch[name]).flatten() for name in ("forward_targets", "backward_targets")
        ]
        return model(characters, targets)

    return learning_step(model, optimizer, loss)


def matrix_products(arguments: argparse.Namespace) -> Step:
    """Of LSTM layers and softmax, forward and backward, for both directions."""
    num_tokens = arguments.batch_size * NUM_STEPS
    dim, cells = arguments.projection_dim, arguments.dim
    sizes = 4 * [(2 * dim, 4 * cells), (cells, dim)] + 2 * [(dim, arguments.num_samples)]
    triples = []
    for inputs, outputs in sizes:
        shapes = ((num_tokens, inputs), (inputs, outputs), (num_tokens, outputs))
        triples.append([torch.randn(*shape, device=arguments.device) for shape in shapes])

    def step(_: Dict[str, Any]) -> None:
        for tokens, weight, gradient in triples:
            tokens @ weight, gradient @ weight.t(), tokens.t() @ gradient

    return step


def read_batches(arguments: argparse.Namespace) -> Any:
    vocab = SoftmaxVocabulary.from_text(arguments.text, size=arguments.num_words)
    reader = BilmReader(options=bilm_options(arguments))
    loader = BilmDataLoader(
        reader, arguments.text, "streams", batch_size=arguments.batch_size, num_steps=NUM_STEPS
    )
    loader.index_with(vocab)
    batches = []
    # Only whole windows: AllenNLP's side cannot take others.
    for batch in loader:
        if len(batch["batch_sizes"]) == NUM_STEPS and len(set(batch["batch_sizes"])) == 1:
            batches.append(move_to_device(batch, torch.device(arguments.device)))
        if len(batches) > arguments.repetitions:
            return vocab, batches
    raise SystemExit(
        f"{arguments.text}: expected text for {arguments.repetitions + 1} batches of "
        f"{arguments.batch_size} x {NUM_STEPS} tokens, found {len(batches)}. Give a longer text or "
        "fewer --repetitions."
    )


def measure(
    steps: Dict[str, Step], batches: List[Dict[str, Any]], device: str
) -> Dict[str, List[float]]:
    """Seconds of each step, by turns; a first round that is not counted warms up."""
    seconds: Dict[str, List[float]] = {name: [] for name in steps}
    for number, batch in enumerate(batches):
        for name, step in steps.items():
            start = time.perf_counter()
            step(batch)
            if device != "cpu":
                torch.cuda.synchronize()
            if number > 0:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument("text", help="one sentence a line")
    parser.add_argument("--dim", type=int, default=1024)
    parser.add_argument("--projection-dim", type=int, default=128)
    parser.add_argument("--n-highway", type=int, default=1)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--num-samples", type=int, default=8192)
    parser.add_argument("--num-words", type=int, default=50_000)
    parser.add_argument("--repetitions", type=int, default=8)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--output", help="also write the figures to this JSON file")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    vocab, batches = read_batches(arguments)
    num_words = len(vocab.counts)
    steps = {
        "ours": our_step(arguments, vocab, mixed=False),
        "ours, bfloat16": our_step(arguments, vocab, mixed=True),
        "AllenNLP": allennlp_step(arguments, num_words),
        "matrix products": matrix_products(arguments),
    }
    seconds = measure(steps, batches, arguments.device)
    num_tokens = arguments.batch_size * NUM_STEPS
    rates = {name: num_tokens / statistics.median(values) for name, values in seconds.items()}
    print(
        f"{arguments.dim}/{arguments.projection_dim}, batch {arguments.batch_size} x {NUM_STEPS}, "
        f"{arguments.num_samples} samples of {num_words} words, {arguments.device}, "
        f"{torch.get_num_threads()} threads"
    )
    print(f"{'':16}{'tokens/s':>10}{'to AllenNLP':>13}{'of products':>13}")
    for name, rate in rates.items():
        ratio, share = rate / rates["AllenNLP"], rate / rates["matrix products"]
        print(f"{name:16}{rate:10.0f}{ratio:13.2f}{share:13.0%}")
    print(f"floor {FLOOR} in float32")
    if arguments.output:
        with open(arguments.output, "w") as file:
            json.dump({"settings": vars(arguments), "tokens_per_second": rates}, file)


if __name__ == "__main__":
    main()
