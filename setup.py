"""
Installs `elmo_plugin` and what it needs, all but AllenNLP itself.

AllenNLP 2.10.1 is not listed among the requirements: it pins torch < 1.13, spaCy < 3.4 and
transformers < 4.21, which have no wheels for any Python this package runs on, so naming it here
would make every installation fail. It runs well on the versions of requirements.txt and is
installed beside them without its pins: `pip install --no-deps allennlp==2.10.1`.
"""

from pathlib import Path
from typing import List

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent


def read_requirements() -> List[str]:
    """The lines of requirements.txt without their comments."""
    lines = (HERE / "requirements.txt").read_text(encoding="utf-8").splitlines()
    bare = (line.split("#")[0].strip() for line in lines)
    return [line for line in bare if line]


setup(
    name="elmo-plugin",
    version="0.1.0",
    description="ELMo, deep contextualized word representations, as an AllenNLP plugin",
    long_description=(HERE / "README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    license="Apache-2.0",
    python_requires=">=3.11",
    packages=find_packages(include=["elmo_plugin", "elmo_plugin.*"]),
    # Compiled where it runs.
    package_data={"elmo_plugin.modules.recurrent.kernels": ["*.cpp"]},
    install_requires=read_requirements(),
)
