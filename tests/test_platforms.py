"""What the core does on every platform; `tests/other_platform.py` simulates one."""

import json
import subprocess
import sys
import tarfile

import h5py
import pytest
import torch

import elmo_plugin
from elmo_plugin import Elmo, embed_sentences, load_bilm
from elmo_plugin.bilm.files.folders import save_bilm
from elmo_plugin.bilm.pretraining.batches import BatchBuilder, SentenceBatches, TextPass
from elmo_plugin.bilm.pretraining.language_model import LanguageModel
from elmo_plugin.bilm.pretraining.text import Text
from elmo_plugin.bilm.vocabulary_file import count_and_choose
from elmo_plugin.commands.main import main
from elmo_plugin.elmo.store.dump import DumpOptions, dump_embeddings

SENTENCES = [["The", "play", "began", "."], ["Sie", "spielen", "Schäch", "🦉"]]
TEXT = "".join(f"{' '.join(words)}\n" for words in SENTENCES)
MAIN = "from elmo_plugin.commands.main import main; main()"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def elmo(*arguments, text=""):
    """What the command prints in a process of its own, whose standard input is a pipe."""
    command = [sys.executable, "-c", MAIN, *map(str, arguments)]
    done = subprocess.run(command, input=text.encode(), capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode("utf-8").replace("\r\n", "\n")


def test_a_worker_computes_vectors_of_standard_input(tmp_path, shared_bilm):
    out = tmp_path / "vectors.hdf5"
    assert f"{out}: 2 lines, 8 tokens" in elmo(
        "embed", "-", out, "--all", "--num-workers", 1, text=TEXT
    )
    with h5py.File(out) as file:
        assert set(json.loads(file["sentence_to_index"][0])) == set(TEXT.splitlines())
        for number, expected in enumerate(embed_sentences(shared_bilm, SENTENCES)):
            found = torch.from_numpy(file[str(number)][()])
            torch.testing.assert_close(found, expected, atol=1e-6, rtol=0)
    # Nothing is left beside it.
    assert [path.name for path in tmp_path.iterdir()] == ["vectors.hdf5"]


def test_surprisal_of_standard_input_is_printed_in_utf_8(monkeypatch):
    monkeypatch.delenv("ELMO_OPTIONS")
    monkeypatch.delenv("ELMO_WEIGHTS")
    rows = elmo("score", "-", "--bilm", "shipped-small", text=TEXT).splitlines()
    words = [row.split("\t")[2] for row in rows[1:]]
    assert [word for word in words if word not in ("<S>", "</S>")] == sum(SENTENCES, [])


@pytest.mark.parametrize("suffix", [".hdf5", ".safetensors"])
def test_a_file_of_vectors_is_replaced(text, tmp_path, shared_bilm, suffix):
    for _ in range(2):
        dump_embeddings(shared_bilm, text, tmp_path / f"out{suffix}", DumpOptions(), force=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"out{suffix}", "text.txt"]


def test_surprisal_in_a_file_and_neighbours(text, tmp_path, capsys, monkeypatch):
    out = tmp_path / "surprisal.tsv"
    main(["score", str(text), "--output", str(out), "--bilm", "shipped-small"])
    assert b"\r" not in out.read_bytes() and "🦉" in out.read_text(encoding="utf-8")
    index = str(tmp_path / "index")
    for _ in range(2):
        main(["neighbours", "build", str(text), index, "--force"])
    main(["neighbours", "query", index, "The [play] began ."])
    assert "[spielen]" in capsys.readouterr().out


def test_a_bilm_is_written_and_exported(tmp_path, shared_bilm):
    state = {f"elmo.{name}": value for name, value in shared_bilm.state_dict().items()}
    torch.save(state, tmp_path / "weights.th")
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    with tarfile.open(tmp_path / "model.tar.gz", "w:gz") as archive:
        for name in ("weights.th", "config.json"):
            archive.add(tmp_path / name, name)
    for _ in range(2):
        main(["export", str(tmp_path / "model.tar.gz"), str(tmp_path / "out"), "--force"])
    save_bilm(shared_bilm, tmp_path / "saved")
    names = sorted(path.name for path in (tmp_path / "saved").iterdir())
    assert names == ["options.json", "weights.hdf5"]
    options = (tmp_path / "out" / "options.json").read_bytes()
    assert options == (tmp_path / "saved" / "options.json").read_bytes() and b"\r" not in options
    written = load_bilm(tmp_path / "out").parameters()
    assert all(torch.equal(a, b) for a, b in zip(written, shared_bilm.parameters()))


def test_a_scalar_mix_is_trained(options_file, weight_file):
    elmo = Elmo(options_file, weight_file, dropout=0.0)
    mixed = elmo(elmo.bilm.characters.batch_ids(SENTENCES))
    mixed[0].sum().backward()
    assert all(p.grad is not None for p in elmo.parameters() if p.requires_grad)


def test_a_bilm_is_trained_with_workers(text, make_options):
    words, counts = zip(*count_and_choose(str(text), size=100, min_count=1))
    model = LanguageModel(elmo_plugin.BilmOptions.from_dict(make_options()), words, counts)
    builder = BatchBuilder(model.bilm.characters, {word: i for i, word in enumerate(words)})
    one_pass = TextPass(Text(str(text)), SentenceBatches(100), builder)
    (batch,) = one_pass.batches(num_workers=1)
    (expected,) = one_pass.batches()
    assert batch.keys() == expected.keys()
    assert torch.equal(batch["characters"], expected["characters"])


def test_the_cause_of_a_failed_import_is_named(monkeypatch):
    def fail(name):
        raise AttributeError("module 'os' has no attribute 'fork'")

    monkeypatch.delitem(vars(elmo_plugin), "Elmo", raising=False)
    monkeypatch.setattr(elmo_plugin, "import_module", fail)
    with pytest.raises(ImportError, match="Elmo.* module 'os' has no attribute 'fork'"):
        exec("from elmo_plugin import Elmo")
