import matplotlib
import pytest
from matplotlib import pyplot

from elmo_plugin.util.plotting import new_figure, save_picture


@pytest.fixture(autouse=True)
def restore_backend():
    before = pyplot.get_backend()
    yield
    pyplot.switch_backend(before)


def test_the_backend_and_the_settings_of_the_caller_stay(tmp_path):
    pyplot.switch_backend("svg")
    before = dict(matplotlib.rcParams)
    for name in ("a.svg", "b.svg", "c.png", "d.pdf"):
        figure = new_figure(figsize=(2, 1))
        figure.subplots().plot([1, 2])
        save_picture(figure, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "c.png").read_bytes().startswith(b"\x89PNG")
    assert dict(matplotlib.rcParams) == before and pyplot.get_backend() == "svg"
    assert not pyplot.get_fignums()
