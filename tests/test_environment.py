import gzip
import os
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from elmo_plugin import load_bilm
from elmo_plugin.environment import DEFAULTS, set_defaults, setting
from elmo_plugin.util.errors import ConfigurationError

BILM = ("ELMO_OPTIONS", "ELMO_WEIGHTS")
PROJECT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_variable_that_is_not_set_points_into_the_project(monkeypatch, name):
    for unset in {name, *BILM} if name in BILM else {name}:
        monkeypatch.setenv(unset, "put back after the test")
        monkeypatch.delenv(unset)
    set_defaults()
    assert os.environ[name] == str(PROJECT / DEFAULTS[name])
    assert Path(os.environ[name]).is_absolute()


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.parametrize("value", ["/corpora", "relative/path", "https://example.org/x"])
def test_a_value_of_the_user_stays_as_given(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    set_defaults()
    assert os.environ[name] == value


@pytest.mark.parametrize("given, kind", zip(BILM, ("options", "weights")))
def test_one_file_of_a_bilm_alone_is_refused(monkeypatch, given, kind):
    """Otherwise the other half would silently be that of the default biLM."""
    message = f"both files of a biLM or neither, found {kind} /a/file alone.* ELMO_WEIGHTS"
    argument = "options_file" if kind == "options" else "weight_file"
    with pytest.raises(ConfigurationError, match=message):
        load_bilm(**{argument: "/a/file"})
    for name in BILM:
        monkeypatch.setenv(name, "")
    monkeypatch.setenv(given, "/a/file")
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=message):
            load_bilm()
        set_defaults()  # What AllenNLP's side does before an experiment is read.
    with pytest.raises(ConfigurationError, match=message):
        load_bilm(os.environ["ELMO_OPTIONS"], os.environ["ELMO_WEIGHTS"])


def test_one_file_that_is_set_after_the_defaults_is_refused(monkeypatch):
    for name in BILM:
        monkeypatch.setenv(name, "")
    set_defaults()
    assert load_bilm().options.lstm.dim == 512
    monkeypatch.setenv("ELMO_WEIGHTS", "/a/file")
    with pytest.raises(ConfigurationError, match="weights /a/file alone"):
        load_bilm()
    monkeypatch.setenv("ELMO_OPTIONS", "/another/file")
    with pytest.raises(ConfigurationError, match="options file /another/file does not exist"):
        load_bilm()


def test_there_are_no_second_word_vectors_by_default(monkeypatch):
    monkeypatch.setenv("ELMO_TURIAN", "put back after the test")
    monkeypatch.delenv("ELMO_TURIAN")
    set_defaults()
    assert [os.environ[f"ELMO_TURIAN{kind}"] for kind in ("", "_DIM", "_CASED")] == ["", "", ""]


def test_empty_counts_as_not_set_but_for_word_vectors(monkeypatch):
    for name in (*DEFAULTS, "ELMO_TURIAN"):
        monkeypatch.setenv(name, "")
    set_defaults()
    assert os.environ["ELMO_GLOVE"] == os.environ["ELMO_TURIAN"] == ""
    assert os.environ["ELMO_DATA"] == str(PROJECT / DEFAULTS["ELMO_DATA"])


def test_the_encoder_of_cove_is_a_default_for_its_own_word_vectors_only(monkeypatch):
    monkeypatch.delenv("ELMO_COVE", raising=False)
    monkeypatch.delenv("ELMO_GLOVE", raising=False)
    assert setting("ELMO_COVE").endswith("fixtures/cove/weights.pth")
    monkeypatch.setenv("ELMO_GLOVE", "glove.840B.300d.zip")
    assert setting("ELMO_COVE") == ""
    monkeypatch.setenv("ELMO_COVE", "cove.pth")
    assert setting("ELMO_COVE") == "cove.pth"


@pytest.mark.parametrize("value, seed", [(None, "13370"), ("", "13370"), ("2", "2")])
def test_the_seed_is_that_of_allennlp_unless_one_is_given(monkeypatch, value, seed):
    monkeypatch.setenv("ELMO_SEED", value or "")
    if value is None:
        monkeypatch.delenv("ELMO_SEED")
    set_defaults()
    assert os.environ["ELMO_SEED"] == seed


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/elmo_plugin/layers"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/caches"}, "/caches/elmo_plugin/layers"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "caches"}, "/home/me/.cache/elmo_plugin/layers"),
        ({"HOME": "~"}, ""),
        ({"HOME": "/home/me", "ELMO_CACHE": ""}, ""),
        ({"HOME": "/home/me", "ELMO_CACHE": "here"}, "here"),
    ],
)
def test_the_cache_is_in_the_users_cache_folder(monkeypatch, environment, expected):
    monkeypatch.setenv("ELMO_CACHE", "put back after the test")
    for name in ("ELMO_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    set_defaults()
    assert os.environ["ELMO_CACHE"] == expected


def test_the_folder_one_is_in_does_not_matter(monkeypatch, tmp_path):
    monkeypatch.setenv("ELMO_DATA", "put back after the test")
    monkeypatch.delenv("ELMO_DATA")
    monkeypatch.chdir(tmp_path)
    set_defaults()
    assert os.environ["ELMO_DATA"] == str(PROJECT / "fixtures" / "corpora")


@pytest.mark.parametrize("variable", ["ELMO_GLOVE", "ELMO_TURIAN"])
@pytest.mark.parametrize(
    "name, text, dim, cased",
    [
        ("v.txt", "the 1 2 3\nplay 4 5 6\n", "3", ""),
        ("v.txt", "2 3\nthe 1 2 3\nParis 4 5 6\n", "3", "yes"),
        ("v.txt.gz", "the 1 2 3 4\n", "4", ""),
        ("v.zip", "the 1\n", "1", ""),
        ("v.txt", "the 1 2 3\nplay 4 5 6\n\n", "3", ""),
        ("v.txt", "2 3\n", "", ""),
        ("v.txt", "the\t1\t2\n", "", ""),
        ("v.txt", "", "", ""),
        ("nowhere.txt", None, "", ""),
        ("v.txt.gz", b"\x1f\x8bno gzip", "", ""),
    ],
)
def test_width_and_case_of_word_vectors_are_seen_from_the_file(
    monkeypatch, tmp_path, name, text, dim, cased, variable
):
    path = tmp_path / name
    if isinstance(text, bytes):
        path.write_bytes(text)
    elif name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    elif name.endswith(".zip"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inside.txt", text)
    elif text is not None:
        path.write_text(text)
    monkeypatch.setenv(variable, str(path))
    for kind in ("DIM", "CASED"):
        monkeypatch.setenv(f"{variable}_{kind}", "put back after the test")
        monkeypatch.delenv(f"{variable}_{kind}")
    set_defaults()
    assert os.environ[f"{variable}_DIM"] == dim
    assert os.environ[f"{variable}_CASED"] == cased


def test_word_vectors_at_a_url_are_not_downloaded_for_their_width(monkeypatch):
    def cached_path(url, **settings):
        pytest.fail(f"downloaded {url}")

    monkeypatch.setitem(sys.modules, "cached_path", SimpleNamespace(cached_path=cached_path))
    monkeypatch.setenv("ELMO_TURIAN", "(https://host/v.zip)#v.txt")
    for kind, value in (("DIM", "50"), ("CASED", "yes")):
        monkeypatch.setenv(f"ELMO_TURIAN_{kind}", value)
    set_defaults()
    assert os.environ["ELMO_TURIAN_DIM"] == "50"


def damaged_gzip(path):
    content = bytearray(gzip.compress(b"the 1\n"))
    # After the header of 10 bytes: a block of a type that does not exist.
    content[10] = 0xFF
    path.write_bytes(content)
    return str(path)


def archive_without_the_member(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("inside.txt", "the 1\n")
    return f"({path})#other.txt"


def archive_without_files(path):
    zipfile.ZipFile(path, "w").close()
    return str(path)


@pytest.mark.parametrize(
    "make, name",
    [
        (damaged_gzip, "v.txt.gz"),
        (archive_without_the_member, "v.zip"),
        (archive_without_files, "v.zip"),
    ],
)
def test_damaged_word_vectors_stop_only_an_experiment_that_reads_them(
    monkeypatch, tmp_path, make, name
):
    monkeypatch.setenv("ELMO_TURIAN", make(tmp_path / name))
    for kind in ("DIM", "CASED"):
        monkeypatch.setenv(f"ELMO_TURIAN_{kind}", "put back after the test")
        monkeypatch.delenv(f"ELMO_TURIAN_{kind}")
    set_defaults()
    assert os.environ["ELMO_TURIAN_DIM"] == ""
