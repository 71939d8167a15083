"""Downloads from a server on this machine: once, whole, and without remains."""

import os
from pathlib import Path

import pytest

from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import download, local_path
from tests.web_server import web_server

CONTENT = bytes(range(256)) * 10_000


@pytest.fixture
def server(tmp_path):
    (tmp_path / "files/a b").mkdir(parents=True)
    (tmp_path / "files/a b/weights.hdf5").write_bytes(CONTENT)
    (tmp_path / "files/a b/options.json").write_text("{}")
    with web_server(tmp_path / "files") as server:
        yield server


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache/elmo_plugin/downloads"


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_a_file_is_downloaded_once_and_read_offline(server, capsys):
    url = f"{server.url}/a%20b/weights.hdf5"
    path = download(url)
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["weights.hdf5"]
    shown = capsys.readouterr()
    assert shown.err.startswith(f"Downloading {url} to {path}\n") and shown.out == ""
    server.shutdown()
    server.server_close()
    assert download(url) == path
    assert server.asked == ["/a%20b/weights.hdf5"]
    assert capsys.readouterr().err == ""


def test_files_of_one_owner_are_beside_each_other_and_others_elsewhere(server):
    owner = f"{server.url}/a%20b/options.json"
    first = download(owner)
    assert download(f"{server.url}/a%20b/weights.hdf5", owner).parent == first.parent
    assert names(first.parent) == ["options.json", "weights.hdf5"]
    # Names that are equal without special characters are different files.
    for url in (f"{server.url}/a%20b/weights.hdf5", f"{owner}?version=2"):
        assert download(url).parent != first.parent


def test_what_stops_a_download_before_it_begins_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with monkeypatch.context() as with_file:
        with_file.setenv("XDG_CACHE_HOME", str(tmp_path / "file/cache"))
        with pytest.raises(ConfigurationError, match="cannot be downloaded: .*XDG_CACHE_HOME"):
            download("https://host/a.zip")
    with pytest.raises(ConfigurationError, match="Invalid IPv6 URL"):
        download("https://[::1")


@pytest.mark.parametrize("killed", [False, True])
def test_a_download_that_breaks_off_starts_again(server, cache, killed):
    url = f"{server.url}/a%20b/weights.hdf5"
    server.most_bytes = 5_000
    with pytest.raises(ConfigurationError, match=r"cannot be downloaded: .*2,?560,?000|Incomplete"):
        download(url)
    (folder,) = cache.iterdir()
    assert "weights.hdf5" not in names(folder)
    if killed:
        # Longer than the file, so that its end would remain if it were not replaced.
        (folder / "weights.hdf5.unfinished").write_bytes(b"x" * 2 * len(CONTENT))
    server.most_bytes = None
    assert download(url).read_bytes() == CONTENT
    assert names(folder) == ["weights.hdf5"]


def test_what_is_not_there_and_a_server_that_does_not_answer(server):
    with pytest.raises(FileNotFoundError, match=r"\(HTTP status 404\): .*/none.json"):
        download(f"{server.url}/none.json")
    server.shutdown()
    server.server_close()
    with pytest.raises(ConfigurationError, match=r"none.json cannot be downloaded: .*refused"):
        download(f"{server.url}/none.json")


@pytest.mark.parametrize("name", ["..", "%2e%2e", ".hidden", "a%2F..%2F..%2Fb", ""])
def test_no_name_leads_out_of_the_folder(server, cache, monkeypatch, name):
    written = []
    monkeypatch.setattr("elmo_plugin.util.files._fetch", lambda url, path: written.append(path))
    path = download(f"{server.url}/{name}")
    assert written == [path]
    assert Path(os.path.realpath(path)).parent.parent == cache


def test_a_url_may_take_the_place_of_a_path(server, cache):
    assert local_path(f"{server.url}/a%20b/options.json").startswith(str(cache))
