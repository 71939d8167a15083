"""
Show how trained models mix the layers of their biLM (equation 1 and figure 2 of the paper): the
softmax-normalised weight of each layer, and gamma, for each place where ELMo is added.

ARCHIVE is the model.tar.gz or the folder of a training run. Nothing in it is executed. Layer 0 is
the token layer. The weights are those of the best epoch.

example:
    %(prog)s out/srl_elmo/model.tar.gz out/snli_elmo/model.tar.gz --json weights.json
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import List, Optional

from elmo_plugin.analysis.layer_weights import layer_weights
from elmo_plugin.commands.arguments import option, positional
from elmo_plugin.commands.metrics import markdown_table
from elmo_plugin.util.atomic_write import check_output, write_json


@dataclass(kw_only=True)
class Options:
    archive: List[str] = positional("ARCHIVE", "model.tar.gz or folder")
    json: Optional[Path] = option("also write the numbers to this file", metavar="FILE")


def run(args: Options) -> str:
    if args.json is not None:
        check_output(args.json, force=True)
    mixes = [mix for archive in args.archive for mix in layer_weights(archive)]
    layers = [f"layer {number}" for number in range(max(len(mix.weights) for mix in mixes))]
    if args.json is not None:
        write_json(args.json, [asdict(mix) for mix in mixes])
    rows = []
    for mix in mixes:
        weights = [f"{weight:.3f}" for weight in mix.weights]
        weights += [""] * (len(layers) - len(weights))
        rows.append([mix.archive, mix.model, mix.at, *weights, f"{mix.gamma:.3f}"])
    return markdown_table(["archive", "model", "at", *layers, "gamma"], rows, num_left=3)
