import os
from argparse import ArgumentParser, Namespace

from elmo_plugin.bilm.io.archives import TrainedModel
from elmo_plugin.modules.cove_files import stored_cove_encoder, write_cove_encoder
from elmo_plugin.util.atomic_write import check_output

DESCRIPTION = """\
Write the encoder of a trained translation model as a file for `elmo-cove`.

ARCHIVE is a model.tar.gz or the folder of a training run: of a translation model
(elmo-translation), or of a model with an elmo-cove. Nothing in it is executed, and neither its
corpus nor its word vectors are needed.

OUT is a PyTorch state dict with the names and shapes of the one that the authors of CoVe have
published: torch.nn.LSTM reads it too. The encoder is of use only with the word vectors with which
it was trained.
"""

EPILOG = """\
example:
    %(prog)s out/translation/model.tar.gz cove.pth
    ELMO_COVE=cove.pth allennlp train experiments/sst_cove.jsonnet -s out/sst_cove
"""

STOPPED = "stopped, nothing was written."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("archive", metavar="ARCHIVE", help="model.tar.gz or folder")
    parser.add_argument("output_file", metavar="OUT", help="the file to write")
    parser.add_argument("--force", action="store_true", help="replace OUT")


def run(args: Namespace) -> str:
    out = check_output(args.output_file, args.force)
    model = TrainedModel.read(args.archive)
    encoder = stored_cove_encoder(model.parameters, model.location)
    write_cove_encoder(encoder, out)
    return (
        f"{out}: two layers of {encoder.hidden_dim} per direction over word vectors of "
        f"{encoder.input_dim} ({os.path.getsize(out) / 1e6:.1f} MB)."
    )
