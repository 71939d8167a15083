"""Building the compiled kernels, and what happens where they cannot be built."""

import stat
import tempfile

import pytest
import torch

from elmo_plugin.modules.kernels import compiled
from elmo_plugin.modules.kernels.compiled import compiled_kernels
from elmo_plugin.modules.recurrent.cells import HighwayLstmCell, LstmCell, Weights
from elmo_plugin.modules.recurrent.loop import CellStep
from elmo_plugin.modules.recurrent.scan import LayerCall, Run
from tests.modules.recurrent.test_recurrence import Values, run


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A machine that has built nothing yet, of which it takes the file that is built fastest."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    monkeypatch.setattr(compiled, "_SOURCES", [compiled._FOLDER / "character_convolution.cpp"])
    compiled_kernels.cache_clear()
    yield tmp_path / "elmo_plugin"
    compiled_kernels.cache_clear()


needs_compiler = pytest.mark.skipif(compiled_kernels() is None, reason="no C++ compiler")


@needs_compiler
def test_they_are_built_once_and_nothing_else_is_left(cache):
    assert compiled_kernels() is not None
    (built,) = cache.iterdir()
    before = built.stat().st_mtime_ns
    compiled_kernels.cache_clear()
    assert compiled_kernels() is not None
    assert [path.stat().st_mtime_ns for path in cache.iterdir()] == [before]


@needs_compiler
def test_another_processor_or_compiler_builds_its_own(cache, monkeypatch):
    compiled_kernels()
    monkeypatch.setattr("elmo_plugin.modules.kernels.compiled._processor", lambda: "another")
    compiled_kernels.cache_clear()
    compiled_kernels()
    assert len(list(cache.iterdir())) == 2


@needs_compiler
def test_the_compiler_may_be_given_with_arguments_or_called_by_another_program(
    cache, tmp_path, monkeypatch
):
    # As `CXX="ccache c++"`: every call begins with the name of the compiler.
    caller = fake_compiler(tmp_path, 'test "$1" = c++ && exec "$@"') + " c++"
    for number, command in enumerate(("c++ -Wall", "", caller), start=1):
        monkeypatch.setenv("CXX", command)
        compiled_kernels.cache_clear()
        assert compiled_kernels() is not None and len(list(cache.iterdir())) == number


@needs_compiler
def test_a_blank_name_is_that_of_the_usual_compiler(cache, monkeypatch):
    monkeypatch.setenv("CXX", " ")
    assert compiled_kernels() is not None


@needs_compiler
def test_kept_ones_need_no_compiler(cache, monkeypatch):
    compiled_kernels()
    monkeypatch.setenv("PATH", "")
    compiled_kernels.cache_clear()
    assert compiled_kernels() is not None


@needs_compiler
def test_those_for_a_named_processor_are_for_every_computer(cache, monkeypatch):
    monkeypatch.setenv("CXX", f"c++ {compiled._NATIVE}")
    compiled_kernels()
    monkeypatch.setattr(compiled, "_processor", lambda: "another")
    compiled_kernels.cache_clear()
    compiled_kernels()
    assert len(list(cache.iterdir())) == 1


@needs_compiler
@pytest.mark.parametrize("mode, is_used", [(0o700, True), (0o770, False)], ids=["own", "shared"])
def test_where_there_is_no_cache_a_folder_of_the_user_alone_keeps_them(
    tmp_path, cache, monkeypatch, mode, is_used
):
    # A file, and then no home folder at all.
    cache.touch()
    assert compiled_kernels() is not None
    (folder,) = (tmp_path / "tmp").iterdir()
    (library,) = folder.iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(mode)
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "~")
    monkeypatch.setenv("PATH", "")
    compiled_kernels.cache_clear()
    assert (compiled_kernels() is not None) == is_used


def highway_step(dim):
    """A step of one sentence with products in bfloat16."""
    products = torch.zeros(1, 1, dtype=torch.bfloat16)
    weights = Weights(products, products, torch.zeros(6 * dim))
    return CellStep(Run(HighwayLstmCell(), [LayerCall(products, weights)], [1]), products)


def bits(values):
    return values.view(torch.int16)


@needs_compiler
def test_bfloat16_is_rounded_as_pytorch_rounds_it():
    cells = torch.randint(-(2**31), 2**31 - 1, (1, 4096)).int().view(torch.float32)
    cells[0, :8] = torch.tensor([0x3F80, 0x3F808000, 0x3F818000, 0x3F817FFF, 0x7F80, 1, 2, 3]).int(
    ).view(torch.float32)  # fmt: skip
    carry = cells[:, torch.isfinite(cells[0])]
    dim = carry.size(1)
    # The highway cell with a closed gate gives its carry; as a gradient it comes out too.
    step = highway_step(dim)
    gates = torch.zeros(1, 6 * dim)
    d_gates = torch.empty(1, 6 * dim, dtype=torch.bfloat16)
    zeros = torch.zeros(1, dim)
    step.backward(gates, zeros, zeros, carry.clone(), zeros.clone(), d_gates)
    assert torch.equal(bits(d_gates[:, 5 * dim :]), bits(carry.bfloat16()))
    not_numbers = torch.tensor([[0x7FFFFFFF, 0x7FC00000, -1]]).int().view(torch.float32)
    step = highway_step(3)
    d_gates = torch.empty(1, 18, dtype=torch.bfloat16)
    zeros = torch.zeros(1, 3)
    step.backward(torch.zeros(1, 18), zeros, zeros, not_numbers, zeros.clone(), d_gates)
    assert d_gates[:, 15:].isnan().all()


@needs_compiler
@pytest.mark.parametrize("scale", [1e-6, 1e-3, 0.1, 0.299, 0.301, 1.0, 5.0])
def test_small_activations_keep_their_digits(scale):
    gates = torch.zeros(4 * 1000)
    gates[2000:3000] = torch.linspace(-scale, scale, 1000)
    weights = Weights(torch.zeros(4000, 1), torch.zeros(4000, 1000), gates)
    output, _, cell_state = run(LstmCell(), Values(torch.zeros(1, 1), weights), [1])
    expected = 0.5 * gates[2000:3000].double().tanh()
    torch.testing.assert_close(cell_state[0].double(), expected, rtol=1e-6, atol=0.0)
    torch.testing.assert_close(output[0].double(), 0.5 * expected.tanh(), rtol=1e-6, atol=0.0)


@needs_compiler
def test_an_environment_variable_turns_the_kernels_off(monkeypatch, caplog):
    assert highway_step(3).has_kernel
    monkeypatch.setenv("ELMO_COMPILED_KERNELS", "0")
    compiled_kernels.cache_clear()
    with caplog.at_level("INFO"):
        assert not highway_step(3).has_kernel
    compiled_kernels.cache_clear()
    assert "ELMO_COMPILED_KERNELS is 0" in caplog.text


def fake_compiler(folder, script: str) -> str:
    path = folder / "compiler"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.parametrize(
    "script",
    ["exit 1", "exit 0", 'for last; do :; done; echo no > "$last"', ""],
    ids=["fails", "writes nothing", "writes no library", "missing"],
)
def test_a_compiler_that_does_not_work_leaves_the_formulas_after_one_warning(
    cache, tmp_path, monkeypatch, script, caplog
):
    command = fake_compiler(tmp_path, script) if script else "no-such-compiler"
    monkeypatch.setenv("CXX", command)
    assert compiled_kernels() is None
    assert not list(cache.glob("*"))
    assert not highway_step(3).has_kernel
    (warning,) = caplog.messages
    assert command in warning or "kernels.so" in warning
    assert "twice as long" in warning and "Install a C++ compiler" in warning
    assert ".. " not in warning
