"""
Tokens per second of training a biLM, ours against the same model built from AllenNLP's modules, on
the same batches.

    python benchmarks/pretrain.py                    # $ELMO_DATA/lm/small/train.txt
    python benchmarks/pretrain.py text.txt --size full --device cuda --output results.json

Needs a tokenised text of 30,000 tokens, one sentence per line (fewer with smaller batches).
AllenNLP's modules are `CnnHighwayEncoder`, `ElmoLstm` and `SampledSoftmaxLoss` in float32; the
directions share one softmax. A step computes loss, gradients, gradient clipping and Adagrad. All
are measured alternately, and the median of the turns is reported. The limit is the rate of the
matrix products of our LSTMs and softmax alone, each over all tokens at once, in our dtype.
"""

from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Tuple

import torch
from allennlp.modules.elmo_lstm import ElmoLstm
from allennlp.modules.sampled_softmax_loss import SampledSoftmaxLoss
from allennlp.modules.seq2vec_encoders import CnnHighwayEncoder
from allennlp.modules.token_embedders import Embedding, TokenCharactersEncoder
from allennlp.nn.util import move_to_device
from allennlp.training.optimizers import AdagradOptimizer
from bilms import SIZES, options_of
from common import Row, add_text, by_turns, measuring_parser, median_rate, report

from elmo_plugin.tasks.bilm.data_loader import BilmDataLoader
from elmo_plugin.tasks.bilm.model import BilmModel
from elmo_plugin.tasks.bilm.reader import BilmReader
from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary, softmax_ids
from elmo_plugin.training import FusedAdagrad

NUM_STEPS = 20
DTYPES = ("float32", "bfloat16")
ADAGRAD = {"lr": 0.2, "initial_accumulator_value": 1.0}
# Floor and aim by size, device and dtype.
REQUIREMENTS = {
    ("small", "cpu", "float32"): (">= 2.2x", ">= 85 % of limit"),
    ("small", "cpu", "bfloat16"): (None, ">= 5x"),
    ("full", "cuda", "bfloat16"): (">= 60,000 tokens/s", ">= 400,000 tokens/s"),
}
Batch = Dict[str, Any]
Step = Callable[[Batch], None]


class Setting(NamedTuple):
    """Model, batches and device."""

    size: str = "small"
    batch_size: int = 128
    num_samples: int = 8192
    num_words: int = 50_000
    device: str = "cpu"


class AllenNlpBilm(torch.nn.Module):
    """The peer: encodes the characters of every token, as AllenNLP's language model does."""

    def __init__(self, setting: Setting, num_words: int) -> None:
        super().__init__()
        cells, dim, n_highway, filters = SIZES[setting.size]
        self.encoder = TokenCharactersEncoder(
            Embedding(16, num_embeddings=262), CnnHighwayEncoder(16, filters, n_highway, dim)
        )
        self.lstm = ElmoLstm(dim, dim, cells, 2, True, 0.0, 3.0, 3.0)
        self.softmax = SampledSoftmaxLoss(num_words, dim, setting.num_samples)

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


def learning_step(
    model: torch.nn.Module, optimizer: Any, loss: Callable[[Batch], torch.Tensor]
) -> Step:
    def step(batch: Batch) -> None:
        optimizer.zero_grad()
        loss(batch).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 10.0)
        optimizer.step()

    return step


def our_model(setting: Setting, vocab: SoftmaxVocabulary, dtype: str) -> BilmModel:
    return BilmModel(
        vocab,
        options_of(setting.size),
        num_samples=setting.num_samples,
        dropout=0.0,
        mixed_precision=dtype == "bfloat16",
    ).to(setting.device)


def our_step(model: BilmModel) -> Step:
    optimizer = FusedAdagrad(list(model.named_parameters()), **ADAGRAD)
    return learning_step(model, optimizer, lambda batch: model(**batch)["loss"])


def allennlp_step(setting: Setting, num_words: int) -> Step:
    model = AllenNlpBilm(setting, num_words).to(setting.device)
    optimizer = AdagradOptimizer(list(model.named_parameters()), **ADAGRAD)

    def rows_first(values: torch.Tensor) -> torch.Tensor:
        return values.view(NUM_STEPS, -1, *values.shape[1:]).transpose(0, 1)

    def loss(batch: Batch) -> torch.Tensor:
        characters = rows_first(batch["characters"][batch["forward_ids"]])
        targets = [
            rows_first(batch[name]).flatten() for name in ("forward_targets", "backward_targets")
        ]
        return model(characters, targets)

    return learning_step(model, optimizer, loss)


def matrix_products(setting: Setting, dtype: str) -> Step:
    """The products of LSTMs and softmax in forward and backward pass, for both directions."""
    num_tokens = setting.batch_size * NUM_STEPS
    cells, dim = SIZES[setting.size][:2]
    sizes = 4 * [(2 * dim, 4 * cells), (cells, dim)] + 2 * [(dim, setting.num_samples)]
    random = partial(torch.randn, dtype=getattr(torch, dtype), device=setting.device)
    triples = []
    for inputs, outputs in sizes:
        shapes = ((num_tokens, inputs), (inputs, outputs), (num_tokens, outputs))
        triples.append([random(*shape) for shape in shapes])

    def step(_: Batch) -> None:
        for tokens, weight, gradient in triples:
            tokens @ weight, gradient @ weight.t(), tokens.t() @ gradient

    return step


def read_batches(
    text: Path, setting: Setting, number: int
) -> Tuple[SoftmaxVocabulary, List[Batch]]:
    """`number` batches without padding, which `AllenNlpBilm` does not support."""
    if not text.exists():
        raise SystemExit(f"{text} does not exist. Set ELMO_DATA or name a text.")
    vocab = SoftmaxVocabulary.from_text(str(text), size=setting.num_words)
    reader = BilmReader(options=options_of(setting.size))
    loader = BilmDataLoader(
        reader, str(text), "streams", batch_size=setting.batch_size, num_steps=NUM_STEPS
    )
    loader.index_with(vocab)
    batches: List[Batch] = []
    for batch in loader:
        if len(batch["batch_sizes"]) == NUM_STEPS and len(set(batch["batch_sizes"])) == 1:
            batches.append(move_to_device(batch, torch.device(setting.device)))
        if len(batches) == number:
            break
    num_words = len(softmax_ids(vocab))
    if len(batches) < number or num_words <= setting.num_samples:
        raise SystemExit(
            f"{text}: expected {number} batches of {setting.batch_size} x {NUM_STEPS} tokens and "
            f"more than {setting.num_samples:,} different words, found {len(batches)} and "
            f"{num_words:,}. Name a longer text, set ELMO_DATA to a folder that has one, "
            "or choose a smaller --batch-size, --num-samples or --turns."
        )
    return vocab, batches


def measure(text: Path, setting: Setting, turns: int) -> Iterator[Row]:
    torch.manual_seed(0)
    vocab, batches = read_batches(text, setting, turns + 1)
    steps: Dict[Tuple[str, str], Step] = {}
    for dtype in DTYPES:
        steps["ours", dtype] = our_step(our_model(setting, vocab, dtype))
        steps["products", dtype] = matrix_products(setting, dtype)
    steps["AllenNLP", "float32"] = allennlp_step(setting, len(softmax_ids(vocab)))
    runs = {
        name: lambda turn, step=step: step(batches[turn])  # type: ignore[misc]
        for name, step in steps.items()
    }
    num_tokens = turns * [setting.batch_size * NUM_STEPS]
    rates = {key: median_rate(values, num_tokens) for key, values in by_turns(runs, turns).items()}
    for dtype in DTYPES:
        floor, aim = REQUIREMENTS.get((setting.size, setting.device, dtype), (None, None))
        device = "" if setting.device == "cpu" else f", {setting.device}"
        yield Row(
            f"biLM pre-training, {setting.size}, batch {setting.batch_size} x {NUM_STEPS}, "
            f"{dtype}{device}",
            "tokens/s",
            rates["ours", dtype],
            rates["AllenNLP", "float32"],
            share_of_limit=rates["ours", dtype] / rates["products", dtype],
            floor=floor,
            aim=aim,
        )


def main() -> None:
    parser = measuring_parser(__doc__, turns=8)
    default = Setting()
    add_text(parser, name="train.txt")
    parser.add_argument("--size", choices=SIZES, default=default.size)
    parser.add_argument("--batch-size", type=int, default=default.batch_size)
    parser.add_argument("--num-samples", type=int, default=default.num_samples)
    parser.add_argument("--num-words", type=int, default=default.num_words)
    parser.add_argument("--device", choices=("cpu", "cuda"), default=default.device)
    given = parser.parse_args()
    setting = Setting(
        given.size, given.batch_size, given.num_samples, given.num_words, given.device
    )
    report(measure(given.text, setting, given.turns), given.output)


if __name__ == "__main__":
    main()
