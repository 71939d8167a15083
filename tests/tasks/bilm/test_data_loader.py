import itertools
import random
from collections import Counter

import numpy
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.data import Vocabulary

from elmo_plugin.tasks.bilm.data_loader import BilmDataLoader
from elmo_plugin.tasks.bilm.reader import BilmReader
from elmo_plugin.tasks.bilm.vocabulary import SoftmaxVocabulary, softmax_counts

KINDS = {
    "sentences": {"order": "sentences", "tokens_per_batch": 40},
    "streams": {"order": "streams", "batch_size": 6, "num_steps": 4},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three files with 200 sentences of 50 different words."""
    folder = tmp_path_factory.mktemp("text")
    draw = random.Random(0)
    words = [f"w{number}" for number in range(50)]
    for shard in range(3):
        lines = [" ".join(draw.choices(words, k=draw.randint(1, 12))) for _ in range(67)]
        (folder / f"{shard}.txt").write_text("\n".join(lines[: 67 if shard else 66]) + "\n\n")
    return folder


@pytest.fixture(scope="module")
def vocabulary(folder):
    return SoftmaxVocabulary.from_text(text=str(folder))


@pytest.fixture
def make_loader(folder, vocabulary):
    def make(kind="sentences", data_path=folder, **settings):
        loader = BilmDataLoader(BilmReader(), data_path, **{**KINDS[kind], **settings})
        loader.index_with(vocabulary)
        return loader

    return make


def plain(batches):
    """Batches that can be compared."""
    return [
        {name: value.tolist() if torch.is_tensor(value) else value for name, value in batch.items()}
        for batch in batches
    ]


def targets(batches, direction="forward"):
    return Counter(itertools.chain(*(batch[f"{direction}_targets"] for batch in plain(batches))))


def expected_targets(vocabulary, mark):
    """Counts of all words, and one mark per sentence."""
    other = {"</S>": "<S>", "<S>": "</S>"}[mark]
    ids = vocabulary.get_token_to_index_vocabulary("softmax_labels")
    counts = {number: count for number, count in enumerate(softmax_counts(vocabulary)) if count}
    return {number: count for number, count in counts.items() if number != ids[other]}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_workers", [0, 2])
@pytest.mark.parametrize("epoch, batch", [(0, 0), (0, 7), (1, 0), (2, 5)])
def test_a_run_is_taken_up_where_it_stopped(make_loader, kind, num_workers, epoch, batch):
    whole = make_loader(kind)
    expected = [plain(whole) for _ in range(4)]
    loader = make_loader(kind, num_workers=num_workers)
    loader.start_at(epoch, batch)
    found = [plain(loader) for _ in range(epoch, 4)]
    assert found[0] == [{}] * batch + expected[epoch][batch:]
    assert found[1:] == expected[epoch + 1 :]


def test_batches_before_the_start_are_not_built(make_loader, monkeypatch):
    loader = make_loader()
    loader.start_at(0, 10)
    built = []
    build = loader._builder.build
    monkeypatch.setattr(loader._builder, "build", lambda rows: built.append(rows) or build(rows))
    num_batches = len(list(loader))
    assert len(built) == num_batches - 10


def test_text_that_is_not_utf_8_is_refused_or_replaced_as_the_reader_says(vocabulary, tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"w1 w2\ncaf\xe9 w3\n")

    def num_targets(**settings):
        loader = BilmDataLoader(BilmReader(**settings), tmp_path, num_workers=2)
        loader.index_with(vocabulary)
        return sum(len(batch["forward_targets"]) for batch in loader)

    with pytest.raises(ValueError, match=r"latin\.txt:2: expected UTF-8 text, found the byte 0xe9"):
        num_targets()
    assert num_targets(decoding_errors="replace") == 6


@pytest.mark.parametrize("num_workers", [0, 2])
def test_an_epoch_ends_when_the_training_is_over(make_loader, num_workers):
    loader = make_loader(num_workers=num_workers)
    seen = []
    loader.stop_when(lambda: len(seen) == 3)
    for batch in loader:
        seen.append(batch)
    assert plain(seen) == plain(make_loader())[:3]
    assert list(loader) == []
    # Placeholders are for the trainer, which skips and counts them.
    loader.start_at(1, 2)
    assert list(loader) == [{}, {}]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("world_size", [2, 3])
def test_processes_share_out_what_one_would_read(make_loader, monkeypatch, kind, world_size):
    one = list(make_loader(kind))
    shares = []
    for rank in range(world_size):
        monkeypatch.setattr(
            "elmo_plugin.tasks.bilm.data_loader.rank_and_world_size",
            lambda rank=rank: (rank, world_size),
        )
        loader = make_loader(kind)
        shares.append(list(loader))
        assert len(loader) == len(shares[-1])
    assert len({len(share) for share in shares}) == 1
    for direction in ("forward", "backward"):
        together = sum((targets(share, direction) for share in shares), Counter())
        assert together == targets(one, direction)
    # Batch by batch, up to the last of streams, which may be several of one process.
    for batches in list(zip(one, *shares))[: len(shares[0]) - 1]:
        assert targets(batches[:1]) == sum((targets([batch]) for batch in batches[1:]), Counter())


@pytest.mark.parametrize("kind", KINDS)
def test_epochs_and_seeds_change_the_order_and_nothing_else(make_loader, vocabulary, kind):
    loader, again, other = make_loader(kind), make_loader(kind), make_loader(kind, seed=1)
    first, second = plain(loader), plain(loader)
    assert first == plain(again) and second == plain(again)
    assert first != second and first != plain(other)
    fixed = make_loader(kind, shuffle=False)
    assert plain(fixed) == plain(fixed)
    # Every word is predicted once in both directions.
    for mark, direction in (("</S>", "forward"), ("<S>", "backward")):
        for epoch in (again, other, fixed):
            assert targets(epoch, direction) == expected_targets(vocabulary, mark)


@pytest.mark.parametrize("num_workers", [0, 1])
def test_loading_draws_no_random_numbers(make_loader, num_workers):
    torch.manual_seed(0), random.seed(0), numpy.random.seed(0)
    expected = torch.rand(1).item(), random.random(), numpy.random.rand()
    torch.manual_seed(0), random.seed(0), numpy.random.seed(0)
    list(make_loader(num_workers=num_workers))
    assert (torch.rand(1).item(), random.random(), numpy.random.rand()) == expected


def test_batches_go_to_the_device(make_loader):
    loader = make_loader(num_workers=1)
    loader.set_target_device(torch.device("meta"))
    batch = next(iter(loader))
    assert batch["characters"].is_meta and batch["forward_targets"].is_meta
    assert isinstance(batch["batch_sizes"], list)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_workers", [0, 1])
@pytest.mark.parametrize("text", ["", "\n \r\n\n"])
def test_a_text_without_words_is_refused(tmp_path, make_loader, kind, num_workers, text):
    (tmp_path / "a.txt").write_text(text)
    loader = make_loader(kind, data_path=tmp_path / "a.txt", num_workers=num_workers)
    with pytest.raises(ConfigurationError, match="Expected sentences, found no word in .*a.txt"):
        list(loader)
    with pytest.raises(ConfigurationError, match="Expected sentences, found no word in .*a.txt"):
        len(loader)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"order": "words"}, "one of sentences, streams, found 'words'"),
        ({"order": "streams", "tokens_per_batch": 10}, "found `tokens_per_batch` 10"),
        ({"batch_size": 10}, "for `order` 'sentences', found `batch_size` 10"),
        ({"num_steps": 10}, "for `order` 'sentences', found `num_steps` 10"),
        ({"tokens_per_batch": 0}, "`tokens_per_batch` of at least 1, found 0"),
        ({"order": "streams", "num_steps": 0}, "`num_steps` of at least 1, found 0"),
        ({"num_workers": -1}, "`num_workers` of at least 0, found -1"),
        ({"shuffle_lines": 0}, "`shuffle_lines` of at least 1, found 0"),
        ({"data_path": "nowhere*"}, "`nowhere\\*` is no file"),
    ],
)
def test_impossible_settings_are_refused(folder, settings, message):
    with pytest.raises(ConfigurationError, match=message):
        BilmDataLoader(BilmReader(), **{"data_path": folder, **settings})


def test_a_wrong_vocabulary_is_refused(folder):
    loader = BilmDataLoader(BilmReader(), folder)
    other = Vocabulary()
    with pytest.raises(ConfigurationError, match="of type elmo-bilm"):
        loader.index_with(other)
    assert not other.get_namespaces()
