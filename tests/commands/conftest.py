import pytest

from elmo_plugin.bilm import load_bilm
from elmo_plugin.bilm.files.folders import save_bilm
from tests.analysis.language_model import make_softmax


@pytest.fixture(scope="session")
def language_model(tmp_path_factory):
    """The folder of the fixture biLM with a softmax."""
    folder = tmp_path_factory.mktemp("bilm")
    bilm = load_bilm()
    save_bilm(bilm, folder, make_softmax(bilm.output_dim // 2))
    return folder


@pytest.fixture
def in_folder(tmp_path, monkeypatch, language_model):
    """An empty current folder, where the environment names the language model."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELMO_OPTIONS", str(language_model / "options.json"))
    monkeypatch.setenv("ELMO_WEIGHTS", str(language_model / "weights.hdf5"))
    return tmp_path
