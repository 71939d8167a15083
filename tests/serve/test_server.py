import json
import subprocess
import sys

import httpx
import pytest
from fastapi.testclient import TestClient

from elmo_plugin.archives import load_archive
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped
from tests.commands.running import failure, run
from tests.trained import NUM_EPOCHS


def test_the_models_are_described_and_answer_their_examples(server):
    models = httpx.get(f"{server['url']}models").json()
    assert list(models["tasks"]) == list(NUM_EPOCHS) and models["word"] is True
    for name, task in models["tasks"].items():
        assert task["title"] and task["summary"]
        for mix in task["layer_weights"]:
            assert sum(mix["weights"]) == pytest.approx(1.0, abs=1e-5)
            assert json.dumps(mix["gamma"])
        for kind in ("predict", "draw"):
            url = f"{server['url']}{kind}/{name}"
            answer = httpx.post(url, json=task["example"], timeout=60)
            assert answer.status_code == 200 and answer.json(), answer.text


def test_it_listens_on_this_machine_only(server):
    port = server["url"].rstrip("/").rpartition(":")[2]
    listening = subprocess.run(["cat", "/proc/net/tcp"], capture_output=True, text=True).stdout
    addresses = [line.split()[1] for line in listening.splitlines()[1:] if line.split()[3] == "0A"]
    found = [each for each in addresses if int(each.partition(":")[2], 16) == int(port)]
    assert found == [f"0100007F:{int(port):04X}"]


@pytest.mark.usefixtures("set_num_threads")
def test_shipped_archives_are_found_and_given_hosts_answered(monkeypatch, tmp_path, archive_of):
    folder = tmp_path / "pretrained/tasks/ner"
    folder.mkdir(parents=True)
    (folder / "model.tar.gz").symlink_to(archive_of("ner"))
    (tmp_path / "pretrained/small").symlink_to(shipped("pretrained/small"))
    monkeypatch.setattr("elmo_plugin.util.files._PACKAGE", tmp_path / "elmo_plugin")
    served = []
    monkeypatch.setattr("elmo_plugin.commands.serve.serve", lambda app, *_: served.append(app))
    run("elmo-serve", "--allowed-host", "a.example")
    client = TestClient(served[0])
    found = client.get("/health", headers={"Host": "a.example"})
    assert found.json()["tasks"] == ["ner"]
    refused = client.get("/health", headers={"Host": "b.example"})
    assert refused.status_code == 403
    assert "[::1], a.example, with any port." in refused.text


def test_models_are_loaded_in_bfloat16_on_request(monkeypatch, archive_of):
    models = []

    def load(archive, cuda_device, overrides):
        models.append(load_archive(archive, cuda_device, overrides).config["model"])
        raise ConfigurationError("enough")

    monkeypatch.setattr("elmo_plugin.load_predictor", load, raising=False)
    for arguments in ((), ("--bfloat16",)):
        assert "enough" in failure("elmo-serve", archive_of("ner"), "--port", 0, *arguments)
    assert [model.get("dtype") for model in models] == [None, "bfloat16"]


@pytest.mark.parametrize("package", ["fastapi", "uvicorn"])
def test_a_missing_package_is_an_error_before_a_model_is_loaded(package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    message = failure("elmo-serve", "nowhere.tar.gz")
    assert f"needs the package {package}: pip install fastapi uvicorn." in message


def test_an_address_in_use_is_an_error_before_a_model_is_loaded(server):
    port = server["url"].rstrip("/").rpartition(":")[2]
    message = failure("elmo-serve", "nowhere.tar.gz", "--port", port)
    assert f"Cannot listen on 127.0.0.1, port {port}" in message


def test_a_missing_archive_is_an_error(tmp_path):
    assert "missing.tar.gz" in failure("elmo-serve", tmp_path / "missing.tar.gz")
