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

from dataclasses import dataclass
from itertools import islice
from typing import Optional

from elmo_plugin.bilm.files.softmax import softmax_of
from elmo_plugin.bilm.files.trained import TrainedModel
from elmo_plugin.bilm.unit_layers import unit_layers
from elmo_plugin.commands.arguments import option, positional
from elmo_plugin.commands.bilm_arguments import BilmOutput
from elmo_plugin.util.text_files import numbered_lines

STOPPED = "stopped, nothing was written."

# Number of sentences on which the magnitudes of layers are measured.
_NUM_SENTENCES = 1000


@dataclass(kw_only=True)
class Options(BilmOutput):
    archive: str = positional("ARCHIVE", "model.tar.gz or folder")
    unit_layers: Optional[str] = option(
        "scale the layers to a root mean square of 1 on the first 1,000 sentences of TEXT, "
        "one per line: the language model predicts the same, and task models may learn faster "
        "than from small layers",
        metavar="TEXT",
    )


def run(args: Options) -> str:
    args.check()
    model = TrainedModel.read(args.archive)
    bilm, softmax, scaled = model.bilm(), softmax_of(model), ""
    if args.unit_layers is not None:
        lines = islice(numbered_lines(args.unit_layers, newline="\n"), _NUM_SENTENCES)
        sentences = [line.split() for _, line in lines]
        bilm, softmax, (token, recurrent) = unit_layers(bilm, softmax, sentences)
        scaled = (
            f" Root mean squares before scaling: token layer {token:.3f}, LSTM layers "
            f"{recurrent:.3f}."
        )
    return args.save(bilm, softmax) + scaled
