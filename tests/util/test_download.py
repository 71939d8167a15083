"""Downloads from a server on this machine: once, whole, and without remains."""

import os
from pathlib import Path

import pytest

from elmo_plugin.util.download import download
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import local_path
from tests.web_server import web_server

CONTENT = bytes(range(256)) * 10_000


@pytest.fixture
def server(tmp_path):
    (tmp_path / "files/a b").mkdir(parents=True)
    (tmp_path / "files/a b/weights.hdf5").write_bytes(CONTENT)
    (tmp_path / "files/a b/options.json").write_text("{}")
    with web_server(tmp_path / "files") as server:
        yield server


def names(folder):
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_a_file_is_downloaded_once_and_read_offline(server, tmp_path, capsys):
    url = f"{server.url}/a%20b/weights.hdf5"
    path = download(url, tmp_path / "cache")
    assert path.read_bytes() == CONTENT
    assert names(path.parent) == ["weights.hdf5"]
    shown = capsys.readouterr()
    assert shown.err.startswith(f"Downloading {url} to {path}\n") and shown.out == ""
    server.shutdown()
    server.server_close()
    assert download(url, tmp_path / "cache") == path
    assert server.asked == ["/a%20b/weights.hdf5"]
    assert capsys.readouterr().err == ""


def test_files_of_one_owner_are_beside_each_other_and_others_elsewhere(server, tmp_path):
    owner = f"{server.url}/a%20b/options.json"
    first = download(owner, tmp_path)
    assert download(f"{server.url}/a%20b/weights.hdf5", tmp_path, owner).parent == first.parent
    assert names(first.parent) == ["options.json", "weights.hdf5"]
    # Names that are equal without special characters are different files.
    for url in (f"{server.url}/a%20b/weights.hdf5", f"{owner}?version=2"):
        assert download(url, tmp_path).parent != first.parent


def test_what_stops_a_download_before_it_begins_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigurationError, match="cannot be created: .*XDG_CACHE_HOME"):
        download("https://host/a.zip", tmp_path / "file/cache")
    with pytest.raises(ConfigurationError, match="Invalid IPv6 URL"):
        download("https://[::1", tmp_path)


@pytest.mark.parametrize("killed", [False, True])
def test_a_download_that_breaks_off_starts_again(server, tmp_path, monkeypatch, killed):
    url = f"{server.url}/a%20b/weights.hdf5"
    server.most_bytes = 5_000
    with pytest.raises(ConfigurationError, match=r"cannot be downloaded: .*2,?560,?000|Incomplete"):
        download(url, tmp_path / "cache")
    (folder,) = (tmp_path / "cache").iterdir()
    assert "weights.hdf5" not in names(folder)
    if killed:
        # Longer than the file, so that its end would remain if it were not replaced.
        (folder / "weights.hdf5.unfinished").write_bytes(b"x" * 2 * len(CONTENT))
    server.most_bytes = None
    assert download(url, tmp_path / "cache").read_bytes() == CONTENT
    assert names(folder) == ["weights.hdf5"]


def test_what_is_not_there_and_a_server_that_does_not_answer(server, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"\(HTTP status 404\): .*/none.json"):
        download(f"{server.url}/none.json", tmp_path)
    server.shutdown()
    server.server_close()
    with pytest.raises(ConfigurationError, match=r"none.json cannot be downloaded: .*refused"):
        download(f"{server.url}/none.json", tmp_path)


@pytest.mark.parametrize("name", ["..", "%2e%2e", ".hidden", "a%2F..%2F..%2Fb", ""])
def test_no_name_leads_out_of_the_folder(server, tmp_path, monkeypatch, name):
    written = []
    monkeypatch.setattr("elmo_plugin.util.download._fetch", lambda url, path: written.append(path))
    path = download(f"{server.url}/{name}", tmp_path / "cache")
    assert written == [path]
    assert Path(os.path.realpath(path)).parent.parent == tmp_path / "cache"


def test_urls_are_read_without_cached_path(server, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setitem(__import__("sys").modules, "cached_path", None)
    path = local_path(f"{server.url}/a%20b/options.json")
    assert path.startswith(str(tmp_path / "elmo_plugin/downloads"))
    with pytest.raises(ImportError, match="needs the package cached-path"):
        local_path("s3://bucket/file")
