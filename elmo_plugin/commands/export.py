import argparse
import os
import sys
from pathlib import Path
from typing import List, Optional

from allennlp.commands.subcommand import Subcommand
from overrides import overrides

from elmo_plugin.bilm.bilm import Bilm
from elmo_plugin.bilm.io.archives import TrainedModel
from elmo_plugin.bilm.io.array_files import DTYPES
from elmo_plugin.bilm.io.export import allennlp_obstacle, check_export_folder, save_bilm
from elmo_plugin.bilm.io.softmax_files import SoftmaxWeights, softmax_of
from elmo_plugin.util.errors import ConfigurationError

DESCRIPTION = """\
Write the biLM of a trained model as the files of the published biLMs.

ARCHIVE is a model.tar.gz or the folder of a training run: of a language model (elmo-bilm), or of
any model that contains a biLM, for example one that was fine-tuned along with a task. Nothing in
it is executed, and the data it was trained on is not needed.

OUT_DIR receives
    options.json, weights.hdf5       the biLM, for this plugin, for AllenNLP's Elmo and for bilm-tf
    softmax.hdf5, vocabulary.txt     of a language model only: what predicts words, and the words
They appear when all of them are whole.
"""

EPILOG = """\
example:
    allennlp elmo-export runs/bilm/model.tar.gz my-bilm
    allennlp elmo text.txt vectors.hdf5 --all \\
        --options-file my-bilm/options.json --weight-file my-bilm/weights.hdf5
"""


@Subcommand.register("elmo-export")
class ExportCommand(Subcommand):
    """
    `allennlp elmo-export`; everything is said by its `--help`, the work is done by `save_bilm`.
    """

    # Spares users an --include-package that would do nothing.
    requires_plugins = False

    @overrides
    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = parser.add_parser(
            self.name,
            description=DESCRIPTION,
            epilog=EPILOG,
            help="Write a trained biLM as options.json and weights.hdf5.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        subparser.add_argument("archive", metavar="ARCHIVE", help="model.tar.gz or folder")
        subparser.add_argument("out_dir", metavar="OUT_DIR", help="folder to write")
        subparser.add_argument(
            "--dtype",
            choices=DTYPES,
            default="float32",
            help="float16 is half the size and exact to three digits (default: float32)",
        )
        subparser.add_argument(
            "--bilm", metavar="NAME", help="which one, where a model contains several"
        )
        subparser.add_argument("--force", action="store_true", help="replace such files in OUT_DIR")
        subparser.set_defaults(func=run_export)
        return subparser


def run_export(args: argparse.Namespace) -> None:
    """Runs the command; what a user can cause ends it with one sentence."""
    try:
        check_export_folder(args.out_dir, args.force)
        model = TrainedModel.read(args.archive)
        bilm, softmax = model.bilm(args.bilm), softmax_of(model)
        files = save_bilm(bilm, args.out_dir, softmax, args.dtype, args.force)
    except (ConfigurationError, ValueError, OSError) as error:
        sys.exit(f"allennlp elmo-export: {error}")
    except KeyboardInterrupt:
        sys.exit("allennlp elmo-export: stopped, nothing was written.")
    print(_report(bilm, softmax, args.out_dir, files))


def _report(bilm: Bilm, softmax: Optional[SoftmaxWeights], out_dir: str, files: List[Path]) -> str:
    size = sum(os.path.getsize(file) for file in files) / 1e6
    names = ", ".join(file.name for file in files)
    words = "" if softmax is None else f", {len(softmax.words)} words"
    obstacle = allennlp_obstacle(bilm.options)
    unread = f" AllenNLP's own Elmo cannot read it: {obstacle}." if obstacle else ""
    return f"{out_dir}: {names} ({size:.1f} MB{words}).{unread}"
