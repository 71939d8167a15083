import gzip
import os
from pathlib import Path

import pytest

from elmo_plugin import load_bilm
from elmo_plugin.environment import DEFAULTS, set_defaults, setting
from elmo_plugin.util import files
from elmo_plugin.util.errors import ConfigurationError

BILM = ("ELMO_OPTIONS", "ELMO_WEIGHTS")
PROJECT = Path(__file__).resolve().parent.parent


def unset(monkeypatch, *names):
    """What is set after this is put back after the test."""
    for name in names:
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_variable_points_into_the_project_unless_it_is_set(monkeypatch, tmp_path, name):
    unset(monkeypatch, *({name, *BILM} if name in BILM else {name}))
    monkeypatch.chdir(tmp_path)
    set_defaults()
    assert os.environ[name] == str(PROJECT / DEFAULTS[name])
    for value in ("/corpora", "relative/path", "https://example.org/x"):
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


def test_empty_counts_as_not_set_but_for_word_vectors(monkeypatch):
    for name in (*DEFAULTS, "ELMO_TURIAN", "ELMO_SEED"):
        monkeypatch.setenv(name, "")
    set_defaults()
    assert os.environ["ELMO_GLOVE"] == os.environ["ELMO_TURIAN"] == ""
    assert os.environ["ELMO_DATA"] == str(PROJECT / DEFAULTS["ELMO_DATA"])
    assert os.environ["ELMO_SEED"] == "13370"  # AllenNLP's.
    unset(monkeypatch, "ELMO_TURIAN", "ELMO_TURIAN_DIM", "ELMO_TURIAN_CASED")
    set_defaults()
    assert [os.environ[f"ELMO_TURIAN{kind}"] for kind in ("", "_DIM", "_CASED")] == ["", "", ""]


def test_the_encoder_of_cove_is_a_default_for_its_own_word_vectors_only(monkeypatch):
    unset(monkeypatch, "ELMO_COVE", "ELMO_GLOVE")
    assert setting("ELMO_COVE").endswith("fixtures/cove/weights.pth")
    monkeypatch.setenv("ELMO_GLOVE", "glove.840B.300d.zip")
    assert setting("ELMO_COVE") == ""
    monkeypatch.setenv("ELMO_COVE", "cove.pth")
    assert setting("ELMO_COVE") == "cove.pth"


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/elmo_plugin/layers"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/caches"}, "/caches/elmo_plugin/layers"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "caches"}, "/home/me/.cache/elmo_plugin/layers"),
        ({"HOME": "~"}, ""),
        ({"HOME": "/home/me", "ELMO_CACHE": ""}, ""),
    ],
)
def test_the_cache_is_in_the_users_cache_folder(monkeypatch, environment, expected):
    unset(monkeypatch, "ELMO_CACHE", "XDG_CACHE_HOME")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    set_defaults()
    assert os.environ["ELMO_CACHE"] == expected


# After the header of 10 bytes: a block of a type that does not exist.
DAMAGED = (
    gzip.compress(b"the 1\n", mtime=0)[:10] + b"\xff" + gzip.compress(b"the 1\n", mtime=0)[11:]
)


@pytest.mark.parametrize(
    "name, content, dim, cased",
    [
        ("v.txt", b"the 1 2 3\nplay 4 5 6\n\n", "3", ""),
        ("v.txt", b"2 3\nthe 1 2 3\nParis 4 5 6\n", "3", "yes"),
        ("v.txt.gz", gzip.compress(b"the 1 2 3 4\n", mtime=0), "4", ""),
        # Only an experiment that reads the vectors is stopped.
        ("v.txt", b"2 3\n", "", ""),
        ("v.txt", b"", "", ""),
        ("nowhere.txt", None, "", ""),
        ("v.txt.gz", DAMAGED, "", ""),
    ],
)
def test_width_and_case_of_word_vectors_are_seen_from_the_file(
    monkeypatch, tmp_path, name, content, dim, cased
):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        Path(name).write_bytes(content)
    for variable in ("ELMO_GLOVE", "ELMO_TURIAN"):
        monkeypatch.setenv(variable, name)
        unset(monkeypatch, f"{variable}_DIM", f"{variable}_CASED")
    set_defaults()
    for variable in ("ELMO_GLOVE", "ELMO_TURIAN"):
        assert os.environ[f"{variable}_DIM"] == dim
        assert os.environ[f"{variable}_CASED"] == cased


def test_word_vectors_at_a_url_are_not_downloaded_for_their_width(monkeypatch):
    monkeypatch.setattr(files, "download", pytest.fail)
    monkeypatch.setenv("ELMO_TURIAN", "https://host/v.txt")
    for kind, value in (("DIM", "50"), ("CASED", "yes")):
        monkeypatch.setenv(f"ELMO_TURIAN_{kind}", value)
    set_defaults()
    assert os.environ["ELMO_TURIAN_DIM"] == "50"
