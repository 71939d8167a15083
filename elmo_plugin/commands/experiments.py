"""
Copy the experiments to a folder of your own, to edit and to train from there.

OUT receives a jsonnet file per experiment, the settings that they share in `lib/`, and README.md
with an overview. ELMO_DATA, ELMO_OPTIONS, ELMO_WEIGHTS and ELMO_GLOVE name corpora, biLM and word
vectors; the defaults are small ones that come with elmo_plugin.

example:
    %(prog)s experiments
    allennlp train experiments/sst_elmo.jsonnet -s out/sst_elmo --include-package elmo_plugin
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from elmo_plugin.commands.arguments import positional
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped

STOPPED = "stopped. The copy is incomplete: delete it and run the command again."


@dataclass(kw_only=True)
class Options:
    out_dir: Path = positional("OUT", "folder, new or empty")


def run(args: Options) -> str:
    out = args.out_dir
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ConfigurationError(f"{out} exists; expected a folder that is new or empty.")
    # A checkout has our scores there, too.
    without_scores = shutil.ignore_patterns("results")
    shutil.copytree(shipped("experiments"), out, ignore=without_scores, dirs_exist_ok=True)
    copied = (path.relative_to(out) for path in out.rglob("*.jsonnet"))
    number = sum("studies" not in path.parts for path in copied)
    return (
        f"{out}: {number} experiments. To train one: allennlp train {out / 'sst_elmo.jsonnet'} "
        "-s OUTPUT --include-package elmo_plugin"
    )
