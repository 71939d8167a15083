"""
Write a biLM for other programs: the biLM of a trained model as the files of the published biLMs, or
any biLM as a graph for ONNX Runtime or PyTorch.

OUT ending in .onnx or .pt2 is a graph. It reads ids of characters or words, int64, of shape (batch,
length, ids per word), 0 at padding at the end of sentences, and does not check them. It returns the
layers, (num_layers, batch, length + 2, dim), with <S> and </S>, and their mask; or with --mix one
vector per word, (batch, length, dim), 0 at padding. ARCHIVE may then be any biLM that --bilm of
`elmo embed` opens. .onnx needs the packages onnx and onnxscript. docs/deploy.md has examples.

Otherwise OUT is a folder, and ARCHIVE is a model.tar.gz or the folder of a training run: of a
language model (elmo-bilm), or of any model that contains a biLM, for example one that was
fine-tuned along with a task. Nothing in it is executed, and the data it was trained on is not
needed. The folder receives options.json and weights.hdf5, for this plugin and AllenNLP's Elmo; and
of a language model its output layer and words, softmax.hdf5 and vocabulary.txt. The files appear
together, when all of them are complete. docs/bilm-files.md describes them.

example:
    %(prog)s runs/bilm/model.tar.gz my-bilm
    elmo embed text.txt vectors.hdf5 --all \\
        --options-file my-bilm/options.json --weight-file my-bilm/weights.hdf5
    %(prog)s shipped-small bilm.onnx
    %(prog)s shipped-small mean.pt2 --mix 0.33 0.33 0.33
"""

import os
from dataclasses import dataclass
from itertools import islice
from typing import List, Optional

import torch

from elmo_plugin.bilm import load_bilm
from elmo_plugin.bilm.files.softmax import softmax_of
from elmo_plugin.bilm.files.trained import TrainedModel, is_archive
from elmo_plugin.bilm.unit_layers import unit_layers
from elmo_plugin.commands.arguments import option, positional
from elmo_plugin.commands.bilm_arguments import BilmOutput
from elmo_plugin.elmo import Elmo
from elmo_plugin.elmo.exported import SUFFIXES, export_model
from elmo_plugin.util.atomic_write import check_output
from elmo_plugin.util.errors import ConfigurationError, check_one_of
from elmo_plugin.util.text_files import numbered_lines

STOPPED = "stopped, nothing was written."

# Number of sentences on which the magnitudes of layers are measured.
_NUM_SENTENCES = 1000


@dataclass(kw_only=True)
class Options(BilmOutput):
    archive: str = positional("ARCHIVE", "model.tar.gz or folder; for a graph, any biLM")
    mix: Optional[List[float]] = option(
        "weight of each layer, the token layer first: the graph returns their sum (default: it "
        "returns all layers)",
        metavar="W",
    )
    unit_layers: Optional[str] = option(
        "scale the layers to a root mean square of 1 on the first 1,000 sentences of TEXT, "
        "one per line: the language model predicts the same, and task models may learn faster "
        "than from small layers",
        metavar="TEXT",
    )


def run(args: Options) -> str:
    is_graph = args.out_dir.suffix.lower() in SUFFIXES
    if (args.unit_layers or args.dtype != "float32") if is_graph else args.mix:
        raise ConfigurationError(
            f"{args.out_dir}: --mix is for .onnx and .pt2, --dtype and --unit-layers are for a "
            "folder. Leave them out."
        )
    if is_graph:
        return _write_graph(args)
    args.check()
    if args.out_dir.suffix and not is_archive(args.archive):
        check_one_of(SUFFIXES, suffix=args.out_dir.suffix)
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


def _write_graph(args: Options) -> str:
    out = check_output(args.out_dir, args.force)
    bilm, outputs = load_bilm(args.archive), ["layers", "mask"]
    ids = bilm.characters.batch_ids([["a", "b"], ["c"]])
    model: torch.nn.Module = bilm
    if args.mix:
        model, outputs = Elmo(bilm=args.archive, fixed_weights=args.mix).eval(), ["vectors"]
    export_model(model, out, {"character_ids": ids}, outputs)
    return f"{out}: {', '.join(outputs)} ({os.path.getsize(out) / 1e6:.1f} MB)."
