"""
Adds folders that a checkout has beside the package to the package in a wheel, and the README to the
metadata; the rest of the metadata is in pyproject.toml. `elmo_plugin.util.files` finds the files in
both places.
"""

import re
import runpy
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import find_packages, setup

README = Path("README.md").read_text(encoding="utf-8")
PACKAGE = Path("elmo_plugin/__init__.py").read_text(encoding="utf-8")
(VERSION,) = re.findall('__version__ = "(.+)"', PACKAGE)
link_to_repository = runpy.run_path("scripts/docs_links.py")["link_to_repository"]

# Folders of the checkout, and the files in them that a wheel has.
SHIPPED = {
    "experiments": ["**/*.jsonnet", "**/*.libsonnet", "README.md"],
    "fixtures": ["corpora/**/*", "cove/*.pth"],
    "pretrained": ["small/*", "tasks/*", "tasks/*/*"],
}

# `elmo_plugin.integrations` has no `__init__.py`: AllenNLP's `--include-package elmo_plugin` would
# otherwise import these modules, whose libraries may be missing.
INTEGRATIONS = ["elmo_plugin.integrations", "elmo_plugin.integrations.for_spacy"]

# `build` may hold modules that are no longer in the checkout.
build = TemporaryDirectory()

setup(
    long_description=link_to_repository(README, "README.md", f"v{VERSION}"),
    long_description_content_type="text/markdown",
    packages=find_packages(include=["elmo_plugin", "elmo_plugin.*"])
    + INTEGRATIONS
    + [f"elmo_plugin.{folder}" for folder in SHIPPED],
    package_dir={f"elmo_plugin.{folder}": folder for folder in SHIPPED},
    # A wheel has less than MANIFEST.in puts into a source distribution.
    include_package_data=False,
    package_data={
        "elmo_plugin": ["py.typed"],
        "elmo_plugin.analysis": ["report.html"],
        "elmo_plugin.serve": ["page.html"],
        "elmo_plugin.tasks": ["*/page.json"],
        # Compiled when they are first used.
        "elmo_plugin.modules.kernels": ["*.cpp", "*.h"],
        **{f"elmo_plugin.{folder}": files for folder, files in SHIPPED.items()},
    },
    options={"build": {"build_base": build.name}},
)
