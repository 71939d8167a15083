"""What a user can do wrong is one sentence, and leaves no file."""

import gzip
import json
import os
import shlex
from threading import Thread

import pytest

from elmo_plugin.bilm import load_bilm
from elmo_plugin.bilm.files.folders import save_bilm
from elmo_plugin.commands.main import COMMANDS, main
from tests.analysis.language_model import make_softmax
from tests.analysis.test_layer_weights import placed
from tests.commands import running
from tests.guide import FIXTURES, PROJECT

PAIR = {"sentence_good": "They play.", "sentence_bad": "a play They."}
FILES = {
    "text.txt": b"They play a play .\n\nNobody began the play .\n",
    "texts/a.txt": b"They play\n",
    "only.txt.gz": gzip.compress(b"They play\n"),
    "empty.txt": b"",
    "blank.txt": b"\n\n",
    "junk": b"{\n",
    "x.jsonl": b"The owl\n",
    "queries.txt": b"the [bank]\nthe bank\n",
    "pairs.jsonl": f"{json.dumps(PAIR)}\n".encode(),
}
POS = "--train pos/train.conllu --dev pos/dev.conllu --test pos/test.conllu"
MISTAKES = [
    # Texts.
    ("embed none.txt new --all", "looked for none.txt and none.txt.gz"),
    ("embed empty.txt new --all", "empty.txt is empty; expected a sentence per line."),
    ("score none.txt", "No such file"),
    ("score text.txt text.txt", "Expected one text, found 2"),
    ("score blank.txt --output new", "blank.txt: expected a sentence per line, found no words"),
    ("vocabulary none* new", "`none*` is no file"),
    ("vocabulary blank.txt new", "blank.txt: expected words"),
    ("neighbours build none new", "No text found"),
    # Outputs.
    ("embed text.txt junk/new --all", "junk/new cannot be written: junk is not a folder"),
    ("embed text.txt pipe --all --force", "pipe is a pipe or device; expected the name of a file"),
    ("embed text.txt text.txt --all --force", "is the input"),
    ("embed only.txt only.txt.gz --all --force", "is the input"),
    ("embed text.txt texts --all --force", "texts is a folder"),
    ("embed texts texts/. --all", "is the folder of the texts"),
    ("score text.txt --output text.txt", "text.txt exists. Give --force"),
    ("score text.txt --output text.txt --force", "text.txt is part of the input"),
    ("score only.txt --output only.txt.gz --force", "only.txt.gz is part of the input; name"),
    ("score text.txt --output . --force", ". is a folder; expected the name of a file"),
    ("vocabulary *.txt* only.txt.gz --force", "only.txt.gz is part of the input"),
    ("vocabulary text.txt junk", "junk exists. Give --force"),
    ("neighbours build text.txt texts", "texts holds other files (a.txt)"),
    ("export none.tar.gz junk", "junk is a file; expected a folder"),
    ("experiments texts", "texts exists; expected a folder that is new or empty."),
    ("experiments junk", "junk exists; expected a folder that is new or empty."),
    ("layer-weights placed --json .", ". is a folder; expected the name of a file"),
    ("probe pos --json .", ". is a folder; expected the name of a file"),
    # Models, and what was made with them.
    ("embed text.txt new --all --options-file OPTIONS --weight-file junk", "cannot be read"),
    ("embed text.txt new --all --weight-file a.hdf5", "weights a.hdf5 alone"),
    ("export none.tar.gz new", "none.tar.gz does not exist. Expected a model.tar.gz"),
    ("export texts new", "holds no trained model"),
    ("layer-weights none", "none"),
    ("report texts", "found none"),
    ("report none", "found none"),
    ("neighbours query index [play] --bfloat16", "built with another biLM"),
    ("neighbours query index --file queries.txt", "queries.txt:2: expected one word"),
    ("neighbours query index --file none", "none.gz"),
    ("neighbours query index", "Expected a sentence with one word in brackets"),
    # Options.
    ("embed text.txt new --all --cuda-device 99", "CUDA devices"),
    ("embed text.txt new --all --device cuda:99", "CUDA devices"),
    ("embed text.txt new --all --device mps", "no MPS device"),
    ("serve --port 0 --device mps", "trained models run on cpu and cuda"),
    ("embed text.txt new --all --num-workers 2 --cuda-device 0", "--num-workers are for CPUs"),
    ("embed text.txt new.hdf5 --all --compression zstd", "zstd: .hdf5 has gzip or"),
    (
        "embed text.txt new.safetensors --all --compression gzip",
        ".safetensors has no compression",
    ),
    ("embed texts NEW.PARQUET --all --compression gzip", ".parquet has zstd"),
    ("vocabulary text.txt new --min-count 9", "with counts of at least `min_count` (9)"),
    ("study study -s a,b", "expected a path without commas"),
    # Corpora of probes.
    (f"probe pos {POS} --train none.conllu", "looked for none.conllu and none.conllu.gz"),
    (f"probe pos {POS} --columns 1 0", "found column 0"),
    ("probe pos --train x.jsonl", "or none of them for the corpus in ELMO_DATA; found no --dev"),
    ("probe wsd --test x.jsonl", "found no --train, --first-senses"),
    ("probe pos --columns 1 2 --cache new", "--columns: the corpus in ELMO_DATA is CoNLL-U"),
    ("probe pos --representations cove", "--representations cove needs --cove"),
    ("probe pos --representations static --glove=", "static needs --glove"),
    ("probe pos --glove none.txt --cache new", "looked for none.txt"),
    ("probe pos --cove none.pth --cache new", "none.pth does not exist"),
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    for name, content in FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
    os.mkfifo(folder / "pipe")
    for corpus in ("pos", "wsd"):
        (folder / corpus).symlink_to(FIXTURES / "corpora" / corpus)
    placed(folder / "placed", "input")
    bilm = load_bilm()
    save_bilm(bilm, folder / "bilm", make_softmax(bilm.output_dim // 2))
    main(["neighbours", "build", str(folder / "text.txt"), str(folder / "index"), "--layers", "1"])
    return folder


@pytest.fixture
def folder(made, monkeypatch):
    monkeypatch.chdir(made)
    monkeypatch.setenv("ELMO_OPTIONS", str(made / "bilm/options.json"))
    monkeypatch.setenv("ELMO_WEIGHTS", str(made / "bilm/weights.hdf5"))
    before = contents(made)
    yield made
    assert contents(made) == before


def contents(folder):
    files = {path: path.stat() for path in folder.rglob("*") if not path.is_dir()}
    return {path: (found.st_size, found.st_mtime_ns) for path, found in files.items()}


def failure(line):
    """The sentence with which a command ends."""
    command, *arguments = shlex.split(line)
    if command not in COMMANDS:
        return running.failure(f"elmo-{command}", *arguments)
    with pytest.raises(SystemExit) as stopped:
        main([command, *arguments])
    message = stopped.value.code
    assert isinstance(message, str) and "\n" not in message
    assert message.startswith(f"elmo {command}")
    return message


@pytest.mark.parametrize("line, message", MISTAKES, ids=lambda text: text[:40])
def test_a_mistake_is_one_sentence_and_leaves_no_file(folder, line, message):
    options = os.environ["ELMO_OPTIONS"]
    assert message in failure(line.replace("OPTIONS", options).replace("HERE", str(folder)))


@pytest.mark.parametrize("corpus", ["pos", "wsd"])
def test_corpora_are_looked_for_in_the_folder_of_the_environment(tmp_path, monkeypatch, corpus):
    monkeypatch.setenv("ELMO_DATA", f"~/{tmp_path.name}")
    monkeypatch.setenv("HOME", str(tmp_path.parent))
    message = failure(f"probe {corpus}")
    assert f"Expected one file {tmp_path}" in message and "Name it with --train" in message
    (tmp_path / "pos").mkdir()
    for name in ("en-train.conllu", "en-train.conllu.gz", "de-train.conllu"):
        (tmp_path / "pos" / name).touch()
    assert "found 2: " in failure("probe pos")


@pytest.mark.parametrize("command", ["embed pipe new --all", "score pipe --output new"])
def test_a_pipe_without_words_leaves_nothing(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELMO_WEIGHTS", str(PROJECT / "pretrained/small/weights.safetensors"))
    monkeypatch.setenv("ELMO_OPTIONS", str(PROJECT / "pretrained/small/options.json"))
    os.mkfifo("pipe")
    # Opened and closed without a byte.
    Thread(target=lambda: open("pipe", "wb").close(), daemon=True).start()
    assert "expected a sentence per line" in failure(command)
    assert os.listdir(tmp_path) == ["pipe"]


def test_a_bilm_without_a_softmax_is_refused(folder, monkeypatch):
    monkeypatch.setattr("elmo_plugin.bilm.files.softmax.SOFTMAX_FILES", ("none.hdf5",))
    assert "comes without a softmax: expected it in the file" in failure("score text.txt")
