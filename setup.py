"""
Puts folders that stand beside the package in a checkout inside it in a wheel; what the package is
and needs is in pyproject.toml. `elmo_plugin.util.resources` finds the files in both places.
"""

from setuptools import find_packages, setup

# Folder of the checkout, and which of its files a wheel holds.
SHIPPED = {
    "experiments": ["**/*.jsonnet", "**/*.libsonnet", "README.md"],
    "fixtures": ["corpora/**/*", "cove/*.pth"],
    "pretrained": ["small/*", "tasks/*", "tasks/*/*"],
}

# The first has no `__init__.py`, so that AllenNLP does not find it: `--include-package elmo_plugin`
# imports all modules that it finds, and these need libraries that may be missing.
INTEGRATIONS = ["elmo_plugin.integrations", "elmo_plugin.integrations.spacy"]

setup(
    packages=find_packages(include=["elmo_plugin", "elmo_plugin.*"])
    + INTEGRATIONS
    + [f"elmo_plugin.{folder}" for folder in SHIPPED],
    package_dir={f"elmo_plugin.{folder}": folder for folder in SHIPPED},
    package_data={
        "elmo_plugin": ["py.typed"],
        "elmo_plugin.analysis.report": ["page.html"],
        "elmo_plugin.serve": ["page.html"],
        # Compiled where it runs.
        "elmo_plugin.modules.kernels": ["*.cpp", "*.h"],
        **{f"elmo_plugin.{folder}": files for folder, files in SHIPPED.items()},
    },
)
