"""Everything that `load_bilm` opens, and what it says about the rest."""

import json
import re
import shutil
import sys
import tarfile
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from elmo_plugin.bilm import Bilm, load_bilm, read_options, save_weights
from elmo_plugin.bilm.files.find import softmax_of_bilm
from elmo_plugin.bilm.files.folders import save_bilm
from elmo_plugin.bilm.files.published import PUBLISHED, PublishedBilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights
from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.files.test_folders import assert_same
from tests.bilm.token_files import save_token_bilm
from tests.bilm.trained import COUNTS, WORDS, StandIn, save_run, vocabulary
from tests.guide import FIXTURES, PROJECT
from tests.web_server import web_server

PAGE = PROJECT / "docs/bilm-files.md"
ROW = re.compile(r"^\| (.+?) \| `load_bilm\((.+)\)` \|$", re.MULTILINE)
PAIR = "elmo_2x1024_128"


def write_files(folder, bilm, options="options.json", weights="weights.hdf5"):
    folder.mkdir(parents=True, exist_ok=True)
    save_weights(bilm, folder / weights)
    (folder / options).write_text(bilm.options.to_json())
    return folder


def nlpl(folder, bilm):
    write_files(folder, bilm, weights="model.hdf5")
    for name in ("vocab.txt.gz", "meta.json", "README"):
        (folder / name).write_text("{}")
    return folder


def zipped(file, folder, inside=""):
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{inside}{path.name}")
    return file


@pytest.fixture(scope="module")
def places(make_bilm, tmp_path_factory):
    """A folder in which every line of the guide's table can be run."""
    bilm, root = make_bilm(seed=5), tmp_path_factory.mktemp("places")
    write_files(root / "models/elmo", bilm)
    shutil.move(root / "models/elmo/weights.hdf5", root / "models/weights.hdf5")
    write_files(root / "models/elmo", bilm)
    bilm.save_pretrained(root / "my_elmo")
    nlpl(root / "nlpl/216", bilm)
    zipped(root / "216.zip", root / "nlpl/216")
    zipped(root / "nested.zip", root / "nlpl/216", "216/")
    write_files(root / "allennlp", bilm, f"{PAIR}_options.json", f"{PAIR}_weights.hdf5")
    (root / "out").mkdir()
    work = tmp_path_factory.mktemp("run")
    folder, archive = save_run(StandIn(bilm, len(WORDS)), vocabulary(work), work / "lm")
    shutil.copytree(folder, root / "out/lm")
    shutil.copy(archive, root / "out/lm/model.tar.gz")
    write_files(root / "repository", bilm)
    shutil.copytree(FIXTURES / "many_langs/both", root / "models/many_langs")
    return bilm, root


@pytest.fixture
def opening(places, tmp_path, monkeypatch):
    """Opens in that folder, with stand-ins for servers and the Hub."""
    bilm, root = places
    monkeypatch.chdir(root)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def snapshot_download(name, revision, token, allow_patterns):
        assert name == "user/name"
        return str(root / "repository")

    hub = SimpleNamespace(snapshot_download=snapshot_download)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    with web_server(root) as server:
        base = f"{server.url}/allennlp/{PAIR}"
        published = PublishedBilm("", "", f"{base}_options.json", f"{base}_weights.hdf5")
        monkeypatch.setitem(PUBLISHED, "original", published)

        def open_line(arguments):
            arguments = arguments.replace("https://host", server.url).replace('"/', '"')
            return eval(f"load_bilm({arguments})", {"load_bilm": load_bilm})

        yield SimpleNamespace(run=open_line, bilm=bilm, server=server)


ROWS = ROW.findall(PAGE.read_text(encoding="utf-8"))


def test_the_guide_lists_every_kind():
    assert len(ROWS) >= 12


@pytest.mark.parametrize("what, arguments", ROWS, ids=[arguments for _, arguments in ROWS])
def test_each_line_of_the_guide_opens_a_bilm(opening, what, arguments):
    bilm = opening.run(arguments)
    if "comes with" in what:
        assert bilm.options.lstm.dim == 512
    elif "ELMoForManyLangs" in what:
        assert bilm.options.char_cnn.character_unit == "table"
    else:
        assert_same(bilm, opening.bilm)
    assert not bilm.training


@pytest.mark.parametrize("name", ["216.zip", "out/lm", "out/lm/model.tar.gz", "models/elmo"])
def test_from_pretrained_is_the_same_door(opening, name):
    assert_same(Bilm.from_pretrained(name), opening.bilm)


def test_what_was_downloaded_is_read_without_the_server(opening, capsys):
    names = ['"https://host/models/elmo/options.json"', '"https://host/216.zip"', '"original"']
    for name in names:
        opening.run(name)
    opening.server.most_bytes = 0
    asked = list(opening.server.asked)
    for name in names:
        assert_same(opening.run(name), opening.bilm)
    assert opening.server.asked == asked
    assert "pubmed" in PUBLISHED and len(asked) == 5


def test_a_url_of_token_embeddings_brings_its_words(opening, make_options, places):
    folder = save_token_bilm(places[1] / "tokens", make_options())
    assert_same(opening.run('"https://host/tokens/options.json"'), load_bilm(folder))


def test_options_may_be_those_of_a_folder(opening):
    assert read_options(bilm="out/lm") == read_options(bilm="216.zip") == opening.bilm.options


def test_a_local_folder_comes_before_a_name(opening, make_bilm, places):
    other = make_bilm(seed=6)
    folder = write_files(places[1] / "original", other)
    try:
        assert_same(load_bilm("original"), other)
    finally:
        shutil.rmtree(folder)


def test_the_softmax_is_found_in_archives_and_folders(opening, make_bilm, tmp_path):
    assert softmax_of_bilm("models/elmo") is None
    assert softmax_of_bilm("out/lm/model.tar.gz").words == WORDS
    weights = torch.randn(len(WORDS), 6), torch.randn(len(WORDS))
    save_bilm(opening.bilm, tmp_path / "lm", SoftmaxWeights(*weights, WORDS, COUNTS))
    for name in (tmp_path / "lm", zipped(tmp_path / "lm.zip", tmp_path / "lm")):
        # The softmax beside the weights is not taken for them.
        assert_same(load_bilm(name), opening.bilm)
        assert torch.equal(softmax_of_bilm(name).weight, weights[0])


def refused(name, *expected, **settings):
    with pytest.raises(ConfigurationError) as error:
        load_bilm(name, **settings)
    for part in expected:
        assert part in str(error.value)
    assert "\n" not in str(error.value)


def test_what_was_looked_for_and_what_is_there_is_said(opening, tmp_path, make_bilm):
    tried = ("options.json and weights.hdf5", "model.safetensors", "best.th")
    refused(tmp_path, f"{tmp_path} holds no biLM", *tried, "found an empty folder")
    (tmp_path / "options.json").write_text("{}")
    refused(tmp_path, *tried, "found options.json.")
    refused(tmp_path / "options.json", "comes without weights", "found none")
    for name in ("a", "b"):
        save_weights(opening.bilm, tmp_path / f"{name}.hdf5")
    refused(tmp_path, "exactly one other *.hdf5", "found a.hdf5, b.hdf5, options.json.")
    refused(tmp_path / "options.json", "found a.hdf5, b.hdf5.")
    refused(tmp_path / "a.hdf5", "a.hdf5 is no biLM", "found another file", "its options.json")
    refused("nowhere", "no such file or folder", "user/name", "original-5.5b, portuguese")
    refused("small", "allennlp-small", "shipped-small")
    refused("s3://bucket/options.json", "neither a URL (http:// or https://)")
    refused(f"{opening.server.url}/none.zip", "HTTP status 404", "Expected a zip")
    write_files(tmp_path / "wrong", make_bilm(dim=21))
    (tmp_path / "wrong/options.json").write_text(opening.bilm.options.to_json())
    archive = zipped(tmp_path / "wrong.zip", tmp_path / "wrong")
    refused(archive, f"{archive}/weights.hdf5 does not fit its options")


def test_a_bilm_and_its_files_exclude_each_other(opening, monkeypatch):
    refused("models/elmo", "found `bilm` models/elmo and o.json", options_file="o.json")
    for name in ("ELMO_OPTIONS", "ELMO_WEIGHTS"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("ELMO_BILM", "my_elmo")
    assert_same(load_bilm(), opening.bilm)
    monkeypatch.setenv("ELMO_OPTIONS", "o.json")
    refused(None, "found ELMO_BILM my_elmo and o.json")
    # What is given counts, and not the environment.
    assert_same(load_bilm("models/elmo"), opening.bilm)


def link(archive):
    member = tarfile.TarInfo("options.json")
    member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
    archive.addfile(member)


def test_archives_are_not_trusted(tmp_path):
    outside = tmp_path / "outside"
    file = tmp_path / "a.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("../outside", "text")
    refused(file, f"{file} holds no biLM")
    assert not outside.exists()
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        link(archive)
    refused(tmp_path / "a.tar", "is refused: 'options.json' in it is a link")


@pytest.mark.parametrize("kept", [0.3, 0.9])
def test_a_part_of_a_zip_is_refused(places, tmp_path, kept):
    content = (places[1] / "216.zip").read_bytes()
    (tmp_path / "a.zip").write_bytes(content[: int(len(content) * kept)])
    refused(tmp_path / "a.zip", "a.zip is no biLM: ", "one that is damaged or cut short")
    damaged = bytearray(content)
    damaged[int(len(content) * kept)] ^= 255
    (tmp_path / "a.zip").write_bytes(damaged)
    refused(tmp_path / "a.zip", f"{tmp_path}/a.zip")


def test_the_names_that_could_mean_two_bilms_mean_none():
    assert {"small", "medium"}.isdisjoint(PUBLISHED)
    for name, published in PUBLISHED.items():
        options, weights = published.options_file, published.weight_file
        if published.is_shipped:
            assert load_bilm(name).options == load_bilm(Path(options).parent).options
            assert json.loads(Path(options).read_text())["lstm"]["n_layers"] == 2
        else:
            assert re.fullmatch(r"https://allennlp\.s3\.amazonaws\.com/models/elmo/\S+", weights)


def test_weights_of_another_bilm_on_the_server_are_not_taken(opening, make_bilm, places):
    folder, others = places[1] / "several", (make_bilm(seed=6), make_bilm(seed=7))
    for name, bilm in zip(("elmo_de", "elmo"), others):
        write_files(folder, bilm, f"{name}_options.json", f"{name}_weights.hdf5")
    write_files(folder, opening.bilm)
    names = ("elmo_de_options.json", "elmo_options.json", "options.json")
    for name, bilm in zip(names, (*others, opening.bilm)):
        assert_same(opening.run(f'"https://host/several/{name}"'), bilm)


def test_a_page_in_place_of_a_file_is_not_kept(opening, places):
    broken = places[1] / "later.zip"
    broken.write_bytes(b"<html>")
    with pytest.raises(ConfigurationError, match="found another file or a part of one"):
        opening.run('"https://host/later.zip"')
    zipped(broken, places[1] / "nlpl/216")
    assert_same(opening.run('"https://host/later.zip"'), opening.bilm)


def test_a_zip_of_windows_is_read(opening, places, tmp_path):
    assert_same(
        load_bilm(zipped(tmp_path / "win.zip", places[1] / "nlpl/216", "m\\")), opening.bilm
    )
    with pytest.raises(ConfigurationError, match="there is no such file or folder"):
        load_bilm("x" * 300)
