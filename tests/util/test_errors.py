import sys

import pytest

from elmo_plugin.util.errors import optional_package


def test_a_package_that_is_missing_is_to_be_installed():
    with pytest.raises(ImportError, match="Flying needs the package no_wings: pip install wings."):
        optional_package("no_wings.left", "Flying", "wings")


def test_a_package_that_cannot_be_imported_is_shown_with_the_reason(tmp_path, monkeypatch):
    (tmp_path / "wings.py").write_text("import feathers_of_wings")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="cannot be imported .*feathers_of_wings"):
        optional_package("wings", "Flying", error=ValueError)
    assert "wings" not in sys.modules
