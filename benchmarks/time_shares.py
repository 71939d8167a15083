"""
Shares of time of the parts of a model and of kinds of operations, measured by `torch.profiler`.

    python benchmarks/time_shares.py                 # $ELMO_DATA/lm/small and $ELMO_DATA/srl
    python benchmarks/time_shares.py --of embed_small encoder
    python benchmarks/time_shares.py --of epoch --instances 200

Needs the corpora of embed.py, pretrain.py and tasks.py. Backward passes count for the part whose
gradient they compute. Profiling slows down every operation, so the shares of small operations are
too large: use the shares to find what to improve, and the other scripts for rates.
"""

import os
import re
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import embed
import pretrain
import srl_encoder
import tasks
import torch
from allennlp.modules import Seq2SeqEncoder
from bilms import load_pair
from common import argument_parser, default_text, read_sentences
from torch.profiler import ProfilerActivity, profile, record_function

KINDS = ("products", "elementwise", "moving", "the rest")
PRODUCTS = re.compile(r"mm$|mm_|linear|conv|matmul|packed|einsum|^dot$")
MOVING = re.compile(
    "copy|clone|contiguous|^to$|cat$|stack|index|gather|scatter|embedding|unique|sort|pad|pack"
    "|empty|resize|zero|fill|view|reshape|select|slice|narrow|split|chunk|expand|transpose|^t$"
    "|permute|flatten|squeeze|as_strided|detach|alias|repeat|flip|arange|nonzero|item|where"
)
# Part, kind -> share of the time.
Shares = Dict[Tuple[str, str], float]


def kind_of(name: str) -> str:
    """The kind of an operation with a name of the profiler such as `aten::addmm`."""
    space, _, operation = name.rpartition("::")
    if not space or space.startswith("autograd"):
        return "the rest"
    if PRODUCTS.search(operation):
        return "products"
    return "moving" if MOVING.search(operation) else "elementwise"


def mark(module: torch.nn.Module, part: str) -> None:
    """Counts the time of the module's `forward` for `part`."""
    ranges: List[Any] = []

    def begin(*_: Any) -> None:
        ranges.append(record_function(f"part: {part}"))
        ranges[-1].__enter__()

    def end(*_: Any) -> None:
        ranges.pop().__exit__(None, None, None)

    module.register_forward_pre_hook(begin)
    module.register_forward_hook(end)


class MarkedData:
    """A data loader whose time counts for `data`."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __len__(self) -> int:
        return len(self.loader)

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.loader)
        while True:
            with record_function("part: data"):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


def own_part(event: Any) -> Optional[str]:
    if event.name.startswith("part: "):
        return event.name.removeprefix("part: ")
    return "optimiser" if event.name.startswith("Optimizer.") else None


def shares_of(events: List[Any]) -> Shares:
    """Shares of the time within the range `part: other`, which must enclose all that is run."""
    parts: Dict[int, Optional[str]] = {}
    forward_parts: Dict[int, Optional[str]] = {}
    shares: Shares = {}
    for event in sorted(events, key=lambda event: (event.time_range.start, -event.time_range.end)):
        parent = event.cpu_parent
        part = own_part(event) or (parts.get(id(parent)) if parent is not None else None)
        if event.name.startswith("autograd::engine::evaluate_function"):
            # A backward operation has the sequence number of the forward operation it belongs to.
            part = forward_parts.get(event.sequence_nr) or part
        elif event.sequence_nr >= 0 and not is_backward(event):
            forward_parts[event.sequence_nr] = part
        parts[id(event)] = part
        if part is not None:
            key = (part, kind_of(event.name))
            shares[key] = shares.get(key, 0.0) + event.self_cpu_time_total
    total = sum(shares.values())
    return {key: value / total for key, value in shares.items()}


def is_backward(event: Any) -> bool:
    while event is not None:
        if event.name.startswith("autograd::engine::evaluate_function"):
            return True
        event = event.cpu_parent
    return False


def print_shares(title: str, shares: Shares) -> None:
    print(f"\n{title}\n{'':20}{''.join(f'{kind:>12}' for kind in (*KINDS, 'all'))}")
    parts = sorted({part for part, _ in shares}, key=lambda part: part == "other")
    for part in parts:
        values = [shares.get((part, kind), 0.0) for kind in KINDS]
        print(f"{part:20}{''.join(f'{value:>12.0%}' for value in (*values, sum(values)))}")
    values = [sum(shares.get((part, kind), 0.0) for part in parts) for kind in KINDS]
    print(f"{'all':20}{''.join(f'{value:>12.0%}' for value in (*values, sum(values)))}", flush=True)


def profiled(title: str, run: Callable[[], Any], warm_up: bool = True) -> None:
    if warm_up:
        run()
    with profile(activities=[ProfilerActivity.CPU]) as profiler, record_function("part: other"):
        run()
    print_shares(title, shares_of(list(profiler.events())))


def show_inference(size: str, batch_size: int, arguments: Any) -> None:
    sentences = read_sentences(default_text("heldout.txt"), batch_size)
    for dtype, elmo in load_pair(size).ours.items():
        mark(elmo.bilm.character_encoder, "character encoder")
        mark(elmo.bilm.lstm, "LSTMs")
        ids = elmo.bilm.characters.batch_ids(sentences)
        title = f"biLM inference, {size}, batch {batch_size}, {dtype}"
        profiled(title, partial(embed.reader_of(elmo, [[ids]]), 0))


def show_pretraining(arguments: Any) -> None:
    setting = pretrain.Setting()
    vocab, batches = pretrain.read_batches(default_text("train.txt"), setting, 1)
    for dtype in pretrain.DTYPES:
        model = pretrain.our_model(setting, vocab, dtype)
        mark(model.bilm.character_encoder, "character encoder")
        mark(model.softmax, "softmax")
        for module in model.bilm.lstm.modules():
            mark(module, "LSTMs")
        profiled(
            f"biLM pre-training step, {setting.size}, {dtype}",
            partial(pretrain.our_step(model), batches[0]),
        )


def show_encoder(arguments: Any) -> None:
    shape, lengths = srl_encoder.Shape(), srl_encoder.sentence_lengths(80)
    inputs = torch.randn(80, int(lengths.max()), shape.input_size, requires_grad=True)
    for dtype in srl_encoder.REQUIREMENTS:
        step = srl_encoder.our_step(shape, lengths, inputs, dtype)
        profiled(f"SRL encoder, forward and backward, {dtype}", partial(step, 0))


def show_epoch(arguments: Any) -> None:
    for task in tasks.TASKS.values():
        with tempfile.TemporaryDirectory() as directory:
            trainer = tasks.build_variants(task, Path(directory), arguments.instances)["cached"]
            tasks.time_epochs({"cached": trainer}, 1)
            mark(trainer.model.placement, "ELMo")
            mark(trainer.model.text_field_embedder, "words")
            for module in trainer.model.children():
                if isinstance(module, Seq2SeqEncoder):
                    mark(module, "encoders")
            trainer.data_loader = MarkedData(trainer.data_loader)
            title = f"{task.name} training epoch, {arguments.instances} {task.instances}, cached"
            profiled(title, partial(trainer._train_epoch, 1), warm_up=False)


SHOWN: Dict[str, Callable[[Any], None]] = {
    "embed_small": partial(show_inference, "small", 16),
    "embed_full": partial(show_inference, "full", 64),
    "pretrain": show_pretraining,
    "encoder": show_encoder,
    "epoch": show_epoch,
}


def main() -> None:
    parser = argument_parser(__doc__)
    parser.add_argument("--of", nargs="+", choices=SHOWN, default=list(SHOWN))
    parser.add_argument("--instances", type=int, default=400, help="per epoch; default 400")
    arguments = parser.parse_args()
    # The profiler reports its own starts and stops.
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")
    for name in arguments.of:
        SHOWN[name](arguments)


if __name__ == "__main__":
    main()
