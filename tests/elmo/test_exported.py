"""Graphs of biLMs for other runtimes compute what we compute."""

import sys

import pytest
import torch
from onnxruntime import InferenceSession

from elmo_plugin.bilm import load_bilm
from elmo_plugin.commands.main import main
from elmo_plugin.elmo import Elmo, exported
from elmo_plugin.elmo.exported import export_model
from elmo_plugin.modules.seq2seq_encoders import BiGru, HighwayLstm
from elmo_plugin.util.errors import ConfigurationError
from tests.bilm.token_files import save_token_bilm
from tests.guide import PROJECT, blocks

SENTENCES = [
    "The village was mentioned by travellers of the nineteenth century .".split(),
    ["Chess"],
    [],
    ["A", "naïve", "owl", ":", "🦉", "x" * 60],
]
# Padding; other sizes than those of the examples; sentences with and without each other.
BATCHES = [SENTENCES, SENTENCES[:1], SENTENCES[1:2], SENTENCES[2:3], 3 * SENTENCES[1:]]


def sizes():
    return {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}


def reader_of(path):
    """What a user calls, without our code."""
    if path.suffix == ".pt2":
        return torch.export.load(path).module()
    session = InferenceSession(path)
    assert session.get_inputs()[0].shape[:2] == ["batch", "length"]
    return lambda ids: [*map(torch.from_numpy, session.run(None, {"character_ids": ids.numpy()}))]


def assert_equal(read, model, characters):
    for sentences in BATCHES:
        ids = characters.batch_ids(sentences)
        with torch.no_grad():
            found, expected = read(ids), model(ids)
        if isinstance(expected, torch.Tensor) and isinstance(found, list):
            (found,) = found
        if isinstance(expected, tuple):
            found, expected = tuple(found), tuple(expected)
        torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("suffix", exported.SUFFIXES)
def test_graphs_of_the_shipped_bilm_compute_its_layers(suffix, tmp_path, capsys):
    path = tmp_path / f"bilm{suffix}"
    main(["export", "shipped-small", str(path)])
    assert capsys.readouterr().out.startswith(f"{path}: layers, mask (12.")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
    bilm = load_bilm("shipped-small")
    assert_equal(reader_of(path), bilm, bilm.characters)


def test_a_graph_of_token_embeddings_mixes_layers(make_options, tmp_path):
    folder = str(save_token_bilm(tmp_path / "bilm", make_options(n_layers=1)))
    path = tmp_path / "mix.onnx"
    main(["export", folder, str(path), "--mix", "0.25", "2"])
    elmo = Elmo(bilm=folder, fixed_weights=[0.25, 2.0]).eval()
    assert_equal(reader_of(path), elmo, elmo.bilm.characters)


def test_torch_exports_other_bilms_itself(make_bilm):
    bilm = make_bilm(warm_up=True, n_layers=1, projection_dim=None)
    ids = bilm.characters.batch_ids(SENTENCES)
    program = torch.export.export(bilm, (ids,), dynamic_shapes=(sizes(),))
    assert_equal(program.module(), bilm, bilm.characters)


@pytest.mark.parametrize("encoder", [BiGru(3, 4), HighwayLstm(3, 4, num_layers=2)])
def test_encoders_of_tasks_are_exported(encoder):
    encoder.eval()
    mask = torch.tensor([[True, True, False], [False] * 3, [True] * 3, [True, False, False]])
    inputs = torch.randn(4, 3, 3) * mask.unsqueeze(2)
    program = torch.export.export(encoder, (inputs, mask), dynamic_shapes=(sizes(),) * 2)
    torch.testing.assert_close(program.module()(inputs, mask), encoder(inputs, mask))
    inputs, mask = inputs[:1, :2].contiguous(), mask[:1, :2].contiguous()
    torch.testing.assert_close(program.module()(inputs, mask), encoder(inputs, mask))


def test_the_guide_makes_our_ids_without_torch():
    (text,) = (b.text for b in blocks(PROJECT / "docs/deploy.md") if "def character_ids" in b.text)
    names = {}
    exec(text.partition("\n\n\nids = ")[0], names)
    expected = load_bilm("shipped-small").characters.batch_ids(SENTENCES)
    assert names["character_ids"](SENTENCES).tolist() == expected.tolist()


def test_tracing_and_vmap_name_the_command(make_bilm):
    bilm = make_bilm()
    ids = bilm.characters.batch_ids(SENTENCES)
    for call in (lambda: torch.jit.trace(bilm, (ids,)), lambda: torch.vmap(bilm)(ids[None])):
        with pytest.raises(ConfigurationError, match="elmo export BILM OUT.onnx"):
            call()


def test_what_cannot_be_exported_is_one_sentence(make_bilm, tmp_path, monkeypatch):
    bilm, onnx = make_bilm(), tmp_path / "bilm.onnx"
    inputs = {"character_ids": bilm.characters.batch_ids(SENTENCES)}
    with pytest.raises(ConfigurationError, match="bilm.h5: expected the suffix .onnx or .pt2"):
        export_model(bilm, tmp_path / "bilm.h5", inputs, [])
    with pytest.raises(ConfigurationError, match="evaluation mode"):
        export_model(make_bilm().train(), onnx, inputs, [])
    part = make_bilm()
    part.lstm.train()
    with pytest.raises(ConfigurationError, match="evaluation mode"):
        export_model(part, onnx, inputs, [])
    with pytest.raises(ConfigurationError, match="`stateful` cannot be exported"):
        export_model(make_bilm(stateful=True), onnx, inputs, [])
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    with pytest.raises(ImportError, match="pip install onnx onnxscript onnxruntime"):
        export_model(bilm, onnx, inputs, [])
    monkeypatch.setattr(exported, "_OLDEST_TORCH", "99.1")
    with pytest.raises(ConfigurationError, match="PyTorch 99.1 or later"):
        export_model(bilm, onnx, inputs, [])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments, problem",
    [
        (["taken.pt2"], "taken.pt2 exists. Give --force"),
        (["folder", "--mix", "1"], "folder: --mix is for .onnx and .pt2"),
        (["new.pt2", "--dtype", "float16"], "new.pt2: --mix is for"),
        (["new.pt2", "--mix", "1"], "Expected `fixed_weights` of 3 layers"),
        (
            ["new.pt2", "--mix", "1", "nan", "1"],
            r"Expected .* finite numbers, found 3: \[1.0, nan, 1.0",
        ),
        (["new.pt2", "--mix", "1", "1", "1", "inf"], "Expected `fixed_weights` of 3 layers"),
        (["out.txt"], "Expected `suffix` to be one of .onnx, .pt2, found '.txt'"),
    ],
)
def test_wrong_arguments(arguments, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.pt2").write_text("kept")
    with pytest.raises(SystemExit, match=f"elmo export: {problem}"):
        main(["export", "shipped-small", *arguments])
    assert (tmp_path / "taken.pt2").read_text() == "kept"


def test_an_interruption_leaves_no_file(tmp_path, monkeypatch, capsys):
    def interrupted(program, file):
        file.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.export, "save", interrupted)
    monkeypatch.setattr(torch.export, "export", lambda *args, **settings: None)
    with pytest.raises(SystemExit):
        main(["export", "shipped-small", str(tmp_path / "bilm.pt2")])
    assert capsys.readouterr().err == "elmo export: stopped, nothing was written.\n"
    assert not list(tmp_path.iterdir())
