"""Untrusted archives: read as AllenNLP reads them, or refused; nothing in them is executed."""

import errno
import gzip
import json
import logging
import os
import pickle
import re
import sys
import tarfile
from functools import partial

import h5py
import pytest
import torch
from allennlp.common.checks import ConfigurationError
from allennlp.common.registrable import Registrable
from allennlp.models import Archive, Model, archival
from safetensors import safe_open

from elmo_plugin import load_archive, load_task
from elmo_plugin.bilm.files import arrays
from elmo_plugin.bilm.files.trained import TrainedModel, shipped_bilm
from elmo_plugin.util.unpacking import unpack
from tests.tagger import CORPUS, answers, member, repack, saved


def same(archive: Archive, other: Archive) -> bool:
    state, others = archive.model.state_dict(), other.model.state_dict()
    return list(state) == list(others) and all(torch.equal(state[n], others[n]) for n in state)


def refused(path, *expected, **settings):
    with pytest.raises(ConfigurationError) as error:
        load_archive(path, **settings)
    message = str(error.value)
    for part in (str(path), *expected):
        assert part in message
    assert "\n" not in message


@pytest.mark.parametrize("kind", ["archive", "folder"])
def test_an_archive_is_what_allennlp_makes_of_it(tagger, kind):
    path = tagger if kind == "archive" else tagger.parent
    ours, theirs = load_archive(path), archival.load_archive(path)
    assert same(ours, theirs)
    assert ours.config.as_dict() == theirs.config.as_dict()
    assert ours.meta == theirs.meta
    assert ours.validation_dataset_reader.max_instances == 4
    assert answers(ours) == answers(theirs)


_OPENED = []


def _record(event, args):
    if event == "open" and _OPENED and args[1] in ("r", "rb"):
        _OPENED.append(os.path.basename(str(args[0])))


def test_weights_are_opened_once(monkeypatch):
    """The archive leaves out its biLM, and four parts of the model read their options from it."""
    sys.addaudithook(_record)
    # HDF5, safetensors and torch's memory map open files beside Python.
    monkeypatch.setattr(torch.UntypedStorage, "from_file", pytest.fail)
    monkeypatch.setattr(h5py, "is_hdf5", pytest.fail)
    monkeypatch.setattr(h5py, "File", pytest.fail)
    opened = partial(_OPENED.append, "safetensors")
    monkeypatch.setattr(arrays, "safe_open", lambda *a, **s: opened() or safe_open(*a, **s))
    shipped_bilm.cache_clear()
    _OPENED.append("start")
    try:
        first = load_task("ner")
        assert [_OPENED.count(name) for name in ("weights.th", "safetensors")] == [1, 1]
        second = load_task("ner")
        assert [_OPENED.count(name) for name in ("weights.th", "safetensors")] == [2, 1]
    finally:
        _OPENED.clear()
    state, other = first._model.state_dict(), second._model.state_dict()
    assert all(torch.equal(value, other[name]) for name, value in state.items())


def test_a_flipped_bit_is_refused_or_changes_nothing(tagger, tmp_path):
    whole, content = load_archive(tagger), tagger.read_bytes()
    damaged = tmp_path / "damaged.tar.gz"
    num_refused = 0
    for number in range(40):
        flipped = bytearray(content)
        flipped[(2 * number + 1) * len(content) // 80] ^= 1 << number % 8
        damaged.write_bytes(flipped)
        try:
            archive = load_archive(damaged)
        except ConfigurationError as error:
            assert str(damaged) in str(error) and "\n" not in str(error)
            num_refused += 1
        else:
            assert same(archive, whole), number
    assert num_refused > 30


@pytest.mark.parametrize(
    "added",
    [
        member("../escaped", tarfile.REGTYPE),
        member("vocabulary/../../escaped", tarfile.REGTYPE),
        member("link", tarfile.SYMTYPE, "/etc/passwd"),
        member("link", tarfile.SYMTYPE, "config.json"),
        member("link", tarfile.LNKTYPE, "../../secret"),
        member("pipe", tarfile.FIFOTYPE),
        member("null", tarfile.CHRTYPE),
    ],
    ids=lambda added: f"{added.name:.30} {added.linkname}",
)
def test_links_devices_and_paths_outside_of_an_archive_are_refused(
    tagger, tmp_path, monkeypatch, added
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "deep" / "temporary"))
    (tmp_path / "deep" / "temporary").mkdir(parents=True)
    reason = f"is refused: {added.name!r} in it is a link or a device"
    refused(repack(tagger, tmp_path / "evil.tar.gz", members=[added]), reason)
    with pytest.raises(ConfigurationError, match=re.escape(reason)):
        TrainedModel.read(tmp_path / "evil.tar.gz")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["evil.tar.gz"]
    # An absolute path stays in the archive.
    load_archive(repack(tagger, tmp_path / "evil.tar.gz", files={str(tmp_path / "out"): b"evil"}))
    assert not (tmp_path / "out").exists()


def fails(error):
    def fail(*args, **settings):
        raise error

    return fail


NO_SPACE, DENIED = OSError(errno.ENOSPC, "No space"), PermissionError(errno.EACCES, "Denied")


@pytest.mark.parametrize(
    "owner, name, replacement, expected",
    [
        (tarfile, "copyfileobj", fails(NO_SPACE), "No space. Set TMPDIR to a folder"),
        (tarfile, "open", fails(DENIED), "cannot be read: Denied."),
    ],
)
def test_a_computer_without_room_or_rights_is_not_called_damage(
    tagger, monkeypatch, owner, name, replacement, expected
):
    monkeypatch.setattr(owner, name, replacement)
    refused(tagger, expected)


def test_a_missing_gpu_or_full_memory_is_not_called_damage(tagger, monkeypatch):
    with pytest.raises(ConfigurationError, match="^There is no GPU"):
        load_archive(tagger, cuda_device=torch.cuda.device_count())
    monkeypatch.setattr(archival, "_load_model", fails(torch.OutOfMemoryError("out of memory")))
    with pytest.raises(torch.OutOfMemoryError):
        load_archive(tagger)


@pytest.mark.skipif(sys.version_info < (3, 11, 4), reason="stops reading at such a member")
@pytest.mark.timeout(60)
def test_a_member_of_negative_size_is_not_read_for_ever(tagger, tmp_path):
    added = member("again", tarfile.REGTYPE)
    # The size of its own headers.
    added.pax_headers = {"size": "-1536"}
    evil = repack(tagger, tmp_path / "evil.tar.gz", members=[added])
    with pytest.raises(
        ConfigurationError, match="'again' in it .* of negative size|cannot be read"
    ):
        load_archive(evil)


@pytest.mark.parametrize("end", [b"x" * 2000, b""], ids=["damaged", "cut short"])
def test_a_damaged_header_is_not_the_end_of_an_archive(tmp_path, end):
    path = tmp_path / "run.tar"
    with tarfile.open(path, "w") as archive:
        for name in ("config.json", "weights.th"):
            archive.addfile(tarfile.TarInfo(name))
    # In the second of the headers, of 512 bytes each.
    path.write_bytes(path.read_bytes()[:600] + end)
    with pytest.raises(ConfigurationError, match="run.tar cannot be read"):
        unpack(path, tmp_path / "folder", "run.tar")


def set_at(*keys):
    """Sets a value in a configuration, creating missing dictionaries."""

    def change(config):
        *path, last, value = keys
        for key in path:
            config = config[key] if isinstance(config, list) else config.setdefault(key, {})
        config[last] = value

    return change


EVIL = "evil_module_of_an_archive.run"


@pytest.fixture
def evil_module(tmp_path, monkeypatch):
    """Something that can be imported, and a fixture that fails if it was."""
    (tmp_path / "evil_module_of_an_archive.py").write_text("def run(**kwargs): return None\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    assert "evil_module_of_an_archive" not in sys.modules


@pytest.mark.parametrize(
    "change, place",
    [
        (set_at("model", "type", EVIL), "model.type"),
        (set_at("model", "lower_encoder", "type", EVIL), "model.lower_encoder.type"),
        (set_at("model", "lower_encoder", EVIL), ""),
        (set_at("model", "initializer", "regexes", [[".*", {"type": EVIL}]]), "regexes.0.1.type"),
        (set_at("dataset_reader", "type", EVIL), "dataset_reader.type"),
        (set_at("validation_dataset_reader", "token_indexers", "x", "type", EVIL), "x.type"),
        (set_at("validation_dataset_reader", "token_indexers", "x", EVIL), ""),
        (set_at("vocabulary", "type", EVIL), "vocabulary.type"),
        (set_at("trainer", "optimizer", "type", "subprocess.Popen"), "trainer.optimizer.type"),
        (set_at("data_loader", "type", EVIL), "data_loader.type"),
        (set_at("evaluation", "type", EVIL), "evaluation.type"),
    ],
)
def test_a_class_named_by_its_path_is_refused(tagger, tmp_path, evil_module, change, place):
    refused(repack(tagger, tmp_path / "evil.tar.gz", change), place)


def test_overrides_can_put_a_registered_name_in_place_of_a_class(tagger, tmp_path, evil_module):
    evil = repack(tagger, tmp_path / "evil.tar.gz", set_at("model", "type", EVIL))
    archive = load_archive(evil, overrides={"model.type": "elmo-ner"})
    assert same(archive, load_archive(tagger))


def test_a_type_registered_by_another_package_is_constructed(tagger, tmp_path):
    known = type(load_archive(tagger).model)
    Model.register("registered.by-another-package")(known)
    try:
        change = set_at("model", "type", "registered.by-another-package")
        archive = load_archive(repack(tagger, tmp_path / "other.tar.gz", change))
    finally:
        del Registrable._registry[Model]["registered.by-another-package"]
    assert same(archive, load_archive(tagger))


def test_allennlp_is_unchanged_outside_of_the_context(tagger, tmp_path):
    before = Registrable.__dict__["resolve_class_name"], archival.extracted_archive
    load_archive(tagger)
    refused(repack(tagger, tmp_path / "evil.tar.gz", set_at("model", "type", "os.system")))
    assert (Registrable.__dict__["resolve_class_name"], archival.extracted_archive) == before
    assert Model.resolve_class_name("collections.OrderedDict")[0].__name__ == "OrderedDict"


@pytest.mark.parametrize(
    "setting, value, safe",
    [
        ("trust_remote_code", True, None),
        ("evalb_directory_path", ".; echo evil #", None),
        ("srl_eval_path", "/tmp/evil.pl", None),
        ("weights_only", False, True),
        ("weights_only", None, True),
        ("weights_only", "true", True),
    ],
)
def test_what_may_execute_code_is_refused_unless_overrides_take_it_away(
    tagger, tmp_path, setting, value, safe
):
    change = set_at("trainer", "deep", [{setting: value}])
    evil = repack(tagger, tmp_path / "evil.tar.gz", change)
    cure = f"code. Set it to {json.dumps(safe)} in --overrides."
    refused(evil, f"trainer.deep.0.{setting} in config.json, {value!r}, may execute", cure)
    load_archive(evil, overrides={f"trainer.deep.0.{setting}": safe})


def test_a_missing_model_of_spacy_is_not_installed(tagger, tmp_path, monkeypatch):
    installed = []
    monkeypatch.setattr("allennlp.common.util.spacy_download", installed.append)
    tokenizer = {"type": "spacy", "language": "evil_model_of_spacy"}
    reader = {"type": "text_classification_json", "tokenizer": tokenizer}
    evil = repack(tagger, tmp_path / "evil.tar.gz", set_at("dataset_reader", reader))
    refused(evil, "names the spaCy model 'evil_model_of_spacy', which is not installed")
    assert installed == []


@pytest.mark.parametrize(
    "change",
    [
        lambda config: '{"model": std.extVar("HOME"), "dataset_reader": {}}',
        lambda config: "[" * 100_000,
        lambda config: "\xff",
    ],
)
def test_a_configuration_is_not_evaluated(tagger, tmp_path, change):
    refused(repack(tagger, tmp_path / "evil.tar.gz", change), "its config.json is damaged: ")


def from_archive(path):
    return set_at("model", {"type": "from_archive", "archive_file": str(path)})


def pretrained(path):
    module = {"archive_file": str(path), "module_path": "text_field_embedder"}
    return set_at("model", "text_field_embedder", {"_pretrained": module})


@pytest.mark.parametrize("reference", [from_archive, pretrained])
def test_archives_that_a_configuration_names_are_loaded_in_the_same_way(
    tagger, tmp_path, evil_module, reference
):
    outer = tmp_path / "outer.tar.gz"
    assert same(load_archive(repack(tagger, outer, reference(tagger))), load_archive(tagger))
    inner = repack(tagger, tmp_path / "inner.tar.gz", set_at("model", "type", EVIL))
    repack(tagger, outer, reference(inner))
    refused(outer, f"{inner} (model.type in config.json) is refused")
    repack(tagger, inner, members=[member("../escaped", tarfile.REGTYPE)])
    refused(outer, f"{inner} is refused: '../escaped' in it is a link")


def test_a_vocabulary_that_is_an_archive_is_not_unpacked(tagger, tmp_path):
    packed = {"vocabulary": tagger.read_bytes()}
    evil = repack(tagger, tmp_path / "evil.tar.gz", without=["vocabulary"], files=packed)
    refused(evil, "no trained model: expected a config.json with")


class Executed:
    def __reduce__(self):
        return pytest.fail, ("the archive was executed",)


@pytest.mark.parametrize("content", [saved({"a": Executed()}), pickle.dumps(Executed())])
def test_weights_are_not_executed_whatever_the_environment_says(
    tagger, tmp_path, monkeypatch, content
):
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")
    evil = repack(tagger, tmp_path / "evil.tar.gz", files={"weights.th": content})
    refused(evil, "(weights.th) cannot be read")
    (tmp_path / "weights.th").write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"^{tmp_path}/weights.th cannot be read"):
        load_archive(tagger, weights_file=str(tmp_path / "weights.th"))


@pytest.mark.parametrize(
    "without, expected",
    [
        ("config.json", "holds no trained model: expected a config.json with"),
        ("weights.th", "holds no trained model: expected weights.th or best.th"),
        ("vocabulary", "holds no trained model: expected a config.json with"),
    ],
)
def test_a_missing_part_of_an_archive_is_named(tagger, tmp_path, without, expected):
    refused(repack(tagger, tmp_path / "half.tar.gz", without=[without]), expected)
    (tmp_path / "folder").mkdir()
    unpack(tmp_path / "half.tar.gz", tmp_path / "folder", "half.tar.gz")
    refused(tmp_path / "folder", expected)


@pytest.mark.parametrize(
    "name, content, error",
    [
        ("config.json", '{"x": 1, "x": 1, "model": {}, "dataset_reader": {}}', "duplicate field"),
        ("meta.json", "{}", "do not describe a model (TypeError: "),
        ("meta.json", '{"version": [1]}', "do not describe a model (AttributeError: "),
        ("vocabulary/labels.txt", "\xff", "do not describe a model (UnicodeDecodeError: "),
        ("vocabulary/tokens.txt", "", "do not describe a model (AssertionError: "),
    ],
)
def test_a_damaged_part_of_an_archive_is_refused(tagger, tmp_path, name, content, error):
    files = {name: content.encode("latin-1")}
    refused(repack(tagger, tmp_path / "damaged.tar.gz", files=files), error)


def test_files_that_are_not_archives_are_refused(tagger, tmp_path, weight_file):
    refused(tmp_path / "none.tar.gz", "does not exist. Expected a model.tar.gz or the folder of")
    refused(weight_file, "damaged, cut short, or no model.tar.gz")
    (tmp_path / "text.tar.gz").write_bytes(gzip.compress(b"no tar file\n" * 99))
    refused(tmp_path / "text.tar.gz", "damaged, cut short, or no model.tar.gz")
    for config in ("{}", "[]", '{"model": {}, "dataset_reader": "x"}'):
        other = repack(tagger, tmp_path / "other.tar.gz", lambda _, config=config: config)
        refused(other, "expected a config.json with")


def test_weights_that_do_not_fit_are_named_with_the_first_difference(tagger, tmp_path):
    state = load_archive(tagger).model.state_dict()
    name = "tag_projection.bias"
    others = {
        "size mismatch for tag_projection.bias": {**state, name: torch.zeros(2)},
        "Missing keys: ['tag_projection.bias']": {n: state[n] for n in state if n != name},
        "Unexpected keys: ['another']": {**state, "another": torch.zeros(2)},
    }
    for difference, weights in others.items():
        other = repack(tagger, tmp_path / "other.tar.gz", files={"weights.th": saved(weights)})
        refused(other, "do not describe a model (RuntimeError: ", difference)
    torch.save(weights, tmp_path / "other.th")
    found = f"cannot be loaded with {tmp_path}/other.th: its weights"
    refused(tagger, found, weights_file=str(tmp_path / "other.th"))


@pytest.mark.parametrize("every_instance", [False, True])
@pytest.mark.parametrize(
    "overrides",
    [
        {"modl.dropout": 0.1},
        {"model.dropout": {"at"}},
        '{"model.dropout": bfloat16}',
        "[1]",
    ],
)
def test_wrong_overrides_are_named(tagger, overrides, every_instance):
    with pytest.raises(ConfigurationError, match=f"^{tagger}: .*model.*dropout"):
        load_archive(tagger, overrides=overrides, every_instance=every_instance)


def test_limits_of_training_are_lifted_on_request_unless_overrides_set_them(tagger, caplog):
    with caplog.at_level(logging.INFO, "elmo_plugin"):
        whole = load_archive(tagger, every_instance=True)
    assert whole.dataset_reader.max_instances is None
    assert whole.validation_dataset_reader.max_instances is None
    assert whole.config["validation_data_loader"]["batches_per_epoch"] is None
    assert len(list(whole.validation_dataset_reader.read(CORPUS))) > 5
    assert f"{tagger} was trained with dataset_reader.max_instances = 5" in caplog.text
    overrides = {"validation_dataset_reader.max_instances": 3, "model.dropout": 0.1}
    for given in (overrides, json.dumps(overrides)):
        limited = load_archive(tagger, overrides=given, every_instance=True)
        assert limited.dataset_reader.max_instances is None
        assert limited.validation_dataset_reader.max_instances == 3
        assert limited.config["model"]["dropout"] == 0.1
