"""What PyTorch does with any module works with ours too, and gives the same numbers."""

import copy
import io
import pickle
from contextlib import nullcontext
from functools import lru_cache
from itertools import chain

import pytest
import torch
from allennlp.data import Vocabulary
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from elmo_plugin import Elmo
from elmo_plugin.bilm import Bilm, BilmOptions
from tests.tasks.small import MODELS, build, make_batch, placement, read

SENTENCES = [["They", "play", "chess", "."], ["Chess"], [], ["They", "play"]]
KINDS = ("bilm", "elmo", "ner")


@lru_cache(maxsize=None)
def corpus(task):
    instances = read(task)[:4]
    return instances, Vocabulary.from_instances(instances)


def make(kind, make_options):
    """A module in evaluation mode, without dropout, and its arguments."""
    torch.manual_seed(0)
    if kind in MODELS:
        instances, vocab = corpus(kind)
        at = "both" if kind == "coref" else "input"
        return build(kind, vocab, placement=placement(at)).eval(), make_batch(vocab, instances)
    if kind.startswith("elmo"):
        weights = [0.5, 0.3, 0.2] if kind == "elmo of fixed weights" else None
        elmo = Elmo(dropout=0.0, trainable=weights is None, fixed_weights=weights).eval()
        return elmo, {"elmo_tokens": elmo.bilm.characters.batch_ids(SENTENCES)}
    bilm = Bilm(BilmOptions.from_dict(make_options()), warm_up=kind == "warm biLM").eval()
    return bilm, {"character_ids": bilm.characters.batch_ids(SENTENCES)}


def tensors(outputs):
    """All tensors of a module's outputs."""
    values = outputs.values() if isinstance(outputs, dict) else outputs
    values = [outputs] if isinstance(outputs, torch.Tensor) else values
    return [value for value in values if isinstance(value, torch.Tensor)]


def assert_same(found, expected, **tolerance):
    pairs = list(zip(tensors(found), tensors(expected), strict=True))
    assert pairs
    for pair in pairs:
        torch.testing.assert_close(*pair, **{"rtol": 0.0, "atol": 0.0, **tolerance})


def saved(module):
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


@pytest.fixture
def alone(tmp_path):
    """`torch.distributed`, for a single process."""
    store = f"file://{tmp_path}/store"
    torch.distributed.init_process_group("gloo", store, rank=0, world_size=1)
    yield
    torch.distributed.destroy_process_group()


@pytest.mark.parametrize("kind", ["bilm", "warm biLM", "elmo", "elmo of fixed weights", *MODELS])
def test_a_module_that_was_made_without_memory_is_what_its_state_says(kind, make_options):
    module, arguments = make(kind, make_options)
    with torch.device("meta"):
        empty, _ = make(kind, make_options)
    empty.to_empty(device="cpu")
    with torch.no_grad():
        for tensor in chain(empty.parameters(), empty.buffers()):
            tensor.fill_(7)
    empty.load_state_dict(module.state_dict())
    assert_same(empty(**arguments), module(**arguments))
    # FSDP cannot shard scalars.
    assert all(parameter.dim() for parameter in module.parameters())
    for name, value in module.state_dict().items():
        assert torch.equal(empty.state_dict()[name], value), name
    if kind in MODELS:
        batch = corpus(kind)[0]
        found, expected = (each.forward_on_instances(batch) for each in (empty, module))
        assert repr(found) == repr(expected)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m)), saved])
@pytest.mark.parametrize("kind", KINDS)
def test_a_copy_computes_the_same_and_shares_nothing(kind, copied, make_options):
    module, arguments = make(kind, make_options)
    with torch.no_grad():
        # Fills what modules cache.
        expected = module(**arguments)
        other = copied(module)
        assert_same(other(**arguments), expected)
        for parameter in other.parameters():
            parameter.zero_()
        assert_same(module(**arguments), expected)


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_workers_of_a_data_loader_compute_the_same(start_method, make_options):
    elmo, arguments = make("elmo of fixed weights", make_options)
    expected = elmo(**arguments)
    loader = DataLoader(
        list(arguments.values()),
        batch_size=None,
        collate_fn=elmo,
        num_workers=1,
        multiprocessing_context=start_method,
    )
    assert_same(list(loader), [expected])


@pytest.mark.parametrize("shard", [DistributedDataParallel, fully_shard])
@pytest.mark.parametrize("kind", KINDS)
def test_parallel_modules_have_the_same_gradients(kind, shard, make_options, alone):
    module, arguments = make(kind, make_options)
    parallel, _ = make(kind, make_options)
    found, expected = shard(parallel)(**arguments), module(**arguments)
    assert_same(found, expected)
    for outputs in (found, expected):
        sum(each.square().sum() for each in tensors(outputs) if each.requires_grad).backward()
    for one, other in zip(parallel.parameters(), module.parameters(), strict=True):
        assert (one.grad is None) == (other.grad is None)
        if one.grad is not None:
            grad = one.grad.full_tensor() if isinstance(one.grad, DTensor) else one.grad
            torch.testing.assert_close(grad, other.grad)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("kind", ["bilm", "elmo"])
def test_other_precisions_compute_nearly_the_same(kind, dtype, make_options):
    module, arguments = make(kind, make_options)
    context, tolerance = nullcontext(), 1e-5
    with torch.no_grad():
        expected = module(**arguments)
        if dtype == torch.float64:
            module.double()
        else:
            context, tolerance = torch.autocast("cpu", dtype), 0.02
        with context:
            found = module(**arguments)
    assert_same(found, expected, rtol=tolerance, atol=tolerance, check_dtype=False)
    if dtype == torch.float64:
        assert tensors(found)[0].dtype == dtype


@pytest.mark.parametrize("has_gradients", [False, True])
@pytest.mark.parametrize("kind", ["bilm", "elmo"])
def test_the_compiler_leaves_the_bilm_alone(kind, has_gradients, make_options):
    module, arguments = make(kind, make_options)
    graphs = []

    def compiled(graph, _):
        graphs.append(graph)
        return graph

    torch.compiler.reset()
    with torch.set_grad_enabled(has_gradients):
        found = torch.compile(module, backend=compiled)(**arguments)
        assert_same(found, module(**arguments), rtol=1e-6, atol=1e-6)
    called = {str(node.target) for graph in graphs for node in graph.graph.nodes}
    assert bool(graphs) == (kind != "bilm")
    assert not [each for each in called if "mkldnn" in each or "nonzero" in each]
