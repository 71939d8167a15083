"""
Write the biLM of a trained model as the files of the published biLMs.

ARCHIVE is a model.tar.gz or the folder of a training run: of a language model (elmo-bilm), or of
any model that contains a biLM, for example one that was fine-tuned along with a task. Nothing in
it is executed, and the data it was trained on is not needed.

OUT_DIR receives options.json and weights.hdf5, for this plugin and AllenNLP's Elmo; and of a
language model its output layer and words, softmax.hdf5 and vocabulary.txt. The files appear
together, when all of them are complete. docs/bilm-files.md describes them.

example:
    %(prog)s runs/bilm/model.tar.gz my-bilm
    elmo embed text.txt vectors.hdf5 --all \\
        --options-file my-bilm/options.json --weight-file my-bilm/weights.hdf5
"""

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Optional

from elmo_plugin.bilm.files.arrays import WRITABLE_DTYPES
from elmo_plugin.bilm.files.folders import allennlp_obstacle, check_export_folder, save_bilm
from elmo_plugin.bilm.files.softmax import softmax_of
from elmo_plugin.bilm.files.trained import TrainedModel
from elmo_plugin.bilm.unit_layers import layer_magnitudes, unit_layers
from elmo_plugin.commands.arguments import flag, option, positional
from elmo_plugin.util.text_files import numbered_lines

STOPPED = "stopped, nothing was written."

# Number of sentences on which the magnitudes of layers are measured.
_NUM_SENTENCES = 1000


@dataclass(kw_only=True)
class Options:
    archive: str = positional("ARCHIVE", "model.tar.gz or folder")
    out_dir: Path = positional("OUT_DIR", "folder to write")
    dtype: str = option(
        "float16 is half the size and exact to three digits",
        "float32",
        choices=WRITABLE_DTYPES,
    )
    unit_layers: Optional[str] = option(
        "scale the layers to a root mean square of 1 on the first 1,000 sentences of TEXT, "
        "one per line: the language model predicts the same, and task models may learn faster "
        "than from small layers",
        metavar="TEXT",
    )
    bilm: Optional[str] = option("the biLM, if the model contains several", metavar="NAME")
    force: bool = flag("replace such files in OUT_DIR")


def run(args: Options) -> str:
    check_export_folder(args.out_dir, args.force)
    model = TrainedModel.read(args.archive)
    bilm, softmax, scaled = model.bilm(args.bilm), softmax_of(model), ""
    if args.unit_layers is not None:
        lines = islice(numbered_lines(args.unit_layers, newline="\n"), _NUM_SENTENCES)
        magnitudes = layer_magnitudes(bilm, [line.split() for _, line in lines])
        bilm, softmax = unit_layers(bilm, softmax, magnitudes)
        scaled = (
            f" Root mean squares before scaling: token layer {magnitudes.token:.3f}, LSTM layers "
            f"{magnitudes.recurrent:.3f}."
        )
    files = save_bilm(bilm, args.out_dir, softmax, args.dtype, args.force)
    size = sum(os.path.getsize(file) for file in files) / 1e6
    names = ", ".join(file.name for file in files)
    words = "" if softmax is None else f", {len(softmax.words)} words"
    obstacle = allennlp_obstacle(bilm.options)
    unread = f" AllenNLP's own Elmo cannot read it: {obstacle}." if obstacle else ""
    return f"{args.out_dir}: {names} ({size:.1f} MB{words}).{unread}{scaled}"
