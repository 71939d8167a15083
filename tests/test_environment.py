import os
from pathlib import Path

import pytest

from elmo_plugin.environment import DEFAULTS, set_defaults

PROJECT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_variable_that_is_not_set_points_into_the_project(monkeypatch, name):
    monkeypatch.setenv(name, "put back after the test")
    monkeypatch.delenv(name)
    set_defaults()
    assert os.environ[name] == str(PROJECT / DEFAULTS[name])
    assert Path(os.environ[name]).is_absolute()


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.parametrize("value", ["/corpora", "relative/path", "https://example.org/x"])
def test_a_value_of_the_user_stays_as_given(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    set_defaults()
    assert os.environ[name] == value


def test_empty_counts_as_not_set_but_for_word_vectors(monkeypatch):
    for name in DEFAULTS:
        monkeypatch.setenv(name, "")
    set_defaults()
    assert os.environ["ELMO_GLOVE"] == ""
    assert os.environ["ELMO_DATA"] == str(PROJECT / DEFAULTS["ELMO_DATA"])


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({"HOME": "/home/me"}, "/home/me/.cache/elmo_plugin/layers"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "/caches"}, "/caches/elmo_plugin/layers"),
        ({"HOME": "/home/me", "XDG_CACHE_HOME": "caches"}, ""),
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
