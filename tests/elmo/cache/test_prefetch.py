"""The prefetching data loader gives AllenNLP's batches and reads ELMo's layers beforehand."""

import random
import threading

import pytest
import torch
from allennlp.common import Lazy, Params
from allennlp.data import Batch, DataLoader, DatasetReader, Vocabulary
from allennlp.data.token_indexers import ELMoTokenCharactersIndexer

from elmo_plugin import Elmo
from elmo_plugin.elmo.cache.layer_cache import LayerCache
from elmo_plugin.elmo.cache.prefetch import _prefetch
from elmo_plugin.elmo.placement import ElmoPlacement, ElmoTokenEmbedder
from elmo_plugin.tasks.squad.reader import SquadReader

TAGGED = "".join(f"word{n}###A " * (n % 5 + 1) + "\n" for n in range(23))


@pytest.fixture
def make_loader(tmp_path):
    (tmp_path / "tagged.txt").write_text(TAGGED)
    reader = DatasetReader.from_params(
        Params(
            {"type": "sequence_tagging", "token_indexers": {"elmo": {"type": "elmo-characters"}}}
        )
    )

    def make(kind, **settings):
        params = Params({"type": kind, "batch_size": 4, **settings})
        loader = DataLoader.from_params(
            params, reader=reader, data_path=str(tmp_path / "tagged.txt")
        )
        loader.index_with(Vocabulary.from_instances(loader.iter_instances()))
        return loader

    return make


@pytest.fixture
def elmo(tmp_path):
    return Elmo(dropout=0.0, cache=str(tmp_path / "cache"))


def ids_of(batch):
    return batch["tokens"]["elmo"]["elmo_tokens"]


def is_idle():
    return not any("elmo-prefetch" in thread.name for thread in threading.enumerate())


@pytest.mark.parametrize(
    "settings", [{"shuffle": True}, {"max_instances_in_memory": 8}, {"batches_per_epoch": 2}]
)
def test_batches_are_those_of_allennlp_in_the_same_order(make_loader, settings):
    seen = {}
    for kind in ("multiprocess", "elmo-prefetch"):
        random.seed(1)
        loader = make_loader(kind, **settings)
        seen[kind] = [ids_of(batch) for _ in range(3) for batch in loader]
    assert len(seen["multiprocess"]) == len(seen["elmo-prefetch"]) > 5
    assert all(torch.equal(expected, found) for expected, found in zip(*seen.values()))
    assert is_idle()


def test_the_next_batch_is_read_from_disk_before_it_is_asked_for(make_loader, elmo):
    loader = make_loader("elmo-prefetch")
    for batch in loader:
        elmo(ids_of(batch))
    (cache,) = LayerCache.opened()
    cache.flush()
    on_disk = []
    get = cache._on_disk
    cache._on_disk = lambda keys: (
        on_disk.append((threading.current_thread().name, len(keys))) or get(keys)
    )
    for batch in loader:
        found, expected = elmo(ids_of(batch)), Elmo(dropout=0.0)(ids_of(batch))
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=5e-4)
    assert len(on_disk) == len(loader)
    # The first batch cannot be prefetched.
    assert sum(name.startswith("elmo-prefetch") for name, _ in on_disk) == len(loader) - 1


@pytest.mark.parametrize("by_sentence", [False, True])
def test_texts_of_several_fields_are_prefetched_as_the_model_reads_them(tmp_path, by_sentence):
    passage = "Ada lives here. She writes, and it rains. "
    reader = SquadReader(
        by_sentence=by_sentence, token_indexers={"elmo": ELMoTokenCharactersIndexer()}
    )
    instances = [
        reader.text_to_instance(f"Who is number {number}?", f"{passage} It is {number}." * 2)
        for number in range(6)
    ]
    for instance in instances:
        reader.apply_token_indexers(instance)
    batches = [Batch(instances[start : start + 2]) for start in (0, 2, 4)]
    for batch in batches:
        batch.index_instances(Vocabulary())
    placement = ElmoPlacement(Lazy(ElmoTokenEmbedder, Params({"cache": str(tmp_path)})))

    def read(batch):
        placement(batch["question"])
        placement(batch["passage"], batch.get("passage_sentences"))

    for batch in batches:
        read(batch.as_tensor_dict())
    (cache,) = LayerCache.opened()
    cache.flush()
    for batch in batches:
        _prefetch(batch.as_tensor_dict())
    # The current batch and the next one are in memory.
    cache._on_disk = lambda keys: pytest.fail(f"{len(keys)} entries were not prefetched")
    for batch in batches[1:]:
        read(batch.as_tensor_dict())


def test_batches_arrive_on_the_target_device(make_loader):
    loader = make_loader("elmo-prefetch")
    loader.set_target_device(torch.device("meta"))
    assert {ids_of(batch).device.type for batch in loader} == {"meta"}
