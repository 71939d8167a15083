"""
Write a biLM that bilm-tf has trained as the files of the published biLMs.

CHECKPOINTS is the folder in which bilm-tf trained, with options.json, `checkpoint`, and the .index
and .data files of checkpoints; or one of these .index files. TensorFlow reads them, so it must be
installed: pip install tensorflow. Nothing of the graph (.meta) is read or executed.

OUT_DIR receives options.json and weights.hdf5, for this plugin and AllenNLP's Elmo; and with
--vocabulary the output layer and its words, softmax.hdf5 and vocabulary.txt, which perplexities and
fine-tuning need. The files appear together, when all of them are complete. docs/bilm-files.md
describes them.

example:
    %(prog)s bilm-tf/save my-bilm --vocabulary bilm-tf/vocab.txt
    elmo score heldout.txt --bilm my-bilm
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from elmo_plugin.bilm.files.checkpoints import find_checkpoint, read_checkpoint
from elmo_plugin.commands.arguments import option, positional
from elmo_plugin.commands.bilm_arguments import BilmOutput
from elmo_plugin.commands.command import check_not_input

STOPPED = "stopped, nothing was written."


@dataclass(kw_only=True)
class Options(BilmOutput):
    checkpoints: Path = positional("CHECKPOINTS", "folder of a training, or .index file")
    vocabulary: Optional[Path] = option("the file of words with which it was trained")


def run(args: Options) -> str:
    checkpoint = find_checkpoint(args.checkpoints)
    # Its options.json would be replaced.
    check_not_input(args.out_dir, [checkpoint.parent])
    args.check()
    bilm, softmax = read_checkpoint(checkpoint, args.vocabulary)
    unread = "" if softmax else " It has no softmax; --vocabulary adds it."
    return f"{checkpoint.stem}: {args.save(bilm, softmax)}{unread}"
