import argparse
import errno
import hashlib
import os
import sys
from typing import Dict, List, Optional

import torch
from allennlp.commands.subcommand import Subcommand
from allennlp.common import logging as common_logging
from allennlp.common.tqdm import Tqdm
from allennlp.common.util import SigTermReceived
from overrides import overrides

from elmo_plugin.bilm import Bilm, load_bilm
from elmo_plugin.bilm.pretraining.text import DECODING_ERRORS
from elmo_plugin.corpora.files import numbered_lines
from elmo_plugin.elmo.dump.dump import DumpOptions, DumpSummary, bilm_identity, dump_embeddings
from elmo_plugin.util.errors import ConfigurationError

DESCRIPTION = """\
Write the layers of a biLM over a text into one HDF5 file.

INPUT is tokenised text, one sentence per line, words separated by white space; plain or gzip, a
URL, or - for standard input. Line i (from 0) becomes the dataset str(i), float32:
    --all            (num_layers, num_tokens, dim), token layer first
    --top, --average (num_tokens, dim)
An empty line becomes an empty dataset. What a sentence gives does not depend on the other lines.

The file also holds `sentence_to_index`, a JSON string: from each sentence, its words joined by one
space, to its line. A sentence that occurs again has a dataset for each of its lines; the map
points to the first. Attributes of the file name the biLM, the settings and the number of lines.

Bytes per token: number of layers (--top, --average: 1) x dim x 4; with --half x 2. For the
published biLM that is 12,288 for --all and 4,096 for --top. Memory grows with --batch-size and
the longest line; the map also with the distinct text (--forget-sentences: not at all).

Interrupted at any moment, even by kill -9 or a full disk, the same command continues; lines done
are kept in OUTPUT.unfinished and its .journal.
"""

EPILOG = """\
example:
    allennlp elmo sentences.txt vectors.hdf5 --all
    python -c 'import h5py; print(h5py.File("vectors.hdf5")["0"].shape)'
"""

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@Subcommand.register("elmo")
class ElmoCommand(Subcommand):
    """
    `allennlp elmo`, as it was until AllenNLP 1.0: vectors of a text as HDF5. Everything is said
    by `allennlp elmo --help`, the work is done by `dump_embeddings`.
    """

    # Spares users an --include-package that would do nothing.
    requires_plugins = False

    @overrides
    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = parser.add_parser(
            self.name,
            description=DESCRIPTION,
            epilog=EPILOG,
            help="Write ELMo vectors of a text to an HDF5 file.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        subparser.add_argument("input_file", metavar="INPUT", help="a sentence per line, or -")
        subparser.add_argument("output_file", metavar="OUTPUT", help="the HDF5 file to write")
        layers = subparser.add_mutually_exclusive_group(required=True)
        for name, what in (
            ("all", "every layer"),
            ("top", "the top layer"),
            ("average", "the average of the layers"),
        ):
            layers.add_argument(
                f"--{name}", dest="layers", action="store_const", const=name, help=f"write {what}"
            )
        add_decoding_errors(subparser)
        _add_bilm_arguments(subparser)
        _add_output_arguments(subparser)
        subparser.set_defaults(func=run_elmo)
        return subparser


def run_elmo(args: argparse.Namespace) -> None:
    """Runs the command; what a user can cause ends it with one sentence."""
    common_logging.FILE_FRIENDLY_LOGGING = args.file_friendly_logging
    try:
        summary = _dump(args)
    except (ConfigurationError, ValueError, torch.OutOfMemoryError, OSError) as error:
        sys.exit(f"allennlp elmo: {_explanation(error, args)}")
    except (KeyboardInterrupt, SigTermReceived):
        sys.exit("allennlp elmo: stopped. Give the same command again to continue.")
    print(_report(summary, args))


def _dump(args: argparse.Namespace) -> DumpSummary:
    options = DumpOptions(
        layers=args.layers,
        dtype="float16" if args.half else "float32",
        compression=None if args.compression == "none" else args.compression,
        batch_size=args.batch_size,
        sentence_keys=args.use_sentence_keys,
        forget_sentences=args.forget_sentences,
        decoding_errors=args.decoding_errors,
    )
    input_path = "/dev/stdin" if args.input_file == "-" else args.input_file
    total = _count_lines(input_path, args.decoding_errors)
    words = _vocabulary(args.vocab_path, args.decoding_errors)
    bilm = _bilm(args, words)
    identity: Dict[str, str] = bilm_identity(bilm, args.weight_file)
    identity["vocabulary"] = hashlib.sha256("\n".join(words).encode()).hexdigest()
    with Tqdm.tqdm(total=total, unit=" sentences") as bar:
        return dump_embeddings(
            bilm,
            input_path,
            args.output_file,
            options,
            identity,
            force=args.force,
            on_progress=bar.update,
        )


def _bilm(args: argparse.Namespace, words: List[str]) -> Bilm:
    if args.cuda_device >= torch.cuda.device_count():
        raise ConfigurationError(
            f"--cuda-device {args.cuda_device}: PyTorch sees {torch.cuda.device_count()} CUDA "
            "devices, numbered from 0. Leave it out to run on the CPU."
        )
    dtype = "bfloat16" if args.bfloat16 else "float32"
    bilm = load_bilm(args.options_file, args.weight_file, dtype=dtype)
    if args.cuda_device >= 0:
        bilm = bilm.to(torch.device("cuda", args.cuda_device))
    bilm.precompute(words)
    return bilm


def _count_lines(path: str, errors: str) -> Optional[int]:
    """How many lines there are, or `None` where they can be read only once."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        return None
    return sum(1 for _ in numbered_lines(path, newline="\n", errors=errors))


def _vocabulary(path: Optional[str], errors: str) -> List[str]:
    if path is None:
        return []
    words = (line.strip() for _, line in numbered_lines(path, newline="\n", errors=errors))
    return [word for word in words if word]


def _explanation(error: BaseException, args: argparse.Namespace) -> str:
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        return (
            f"no room to write {args.output_file} ({error.strerror}). The lines done are kept in "
            f"{args.output_file}.unfinished: make room and give the same command again."
        )
    if isinstance(error, torch.OutOfMemoryError):
        return "the device's memory is too small; lower --batch-size."
    return str(error)


def _report(summary: DumpSummary, args: argparse.Namespace) -> str:
    size = os.path.getsize(args.output_file) / 1e6
    resumed = f" ({summary.num_resumed} of them earlier)" if summary.num_resumed else ""
    left_out = summary.num_lines - summary.num_datasets
    without = f" {left_out} lines were empty or repeated and have no key." if left_out else ""
    return (
        f"{args.output_file}: {summary.num_lines} lines{resumed}, {summary.num_tokens} tokens, "
        f"{size:.1f} MB.{without}"
    )


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, found {text}")
    return int(text)


def add_decoding_errors(subparser: argparse.ArgumentParser) -> None:
    """The option `--decoding-errors`, which every command that reads text has."""
    subparser.add_argument(
        "--decoding-errors",
        choices=DECODING_ERRORS,
        default="strict",
        help="bytes that are not UTF-8: stop with their place, or read each as U+FFFD",
    )


def _add_bilm_arguments(subparser: argparse.ArgumentParser) -> None:
    subparser.add_argument(
        "--options-file",
        default=os.environ["ELMO_OPTIONS"],
        help="options of the biLM, path or URL",
    )
    subparser.add_argument(
        "--weight-file",
        default=os.environ["ELMO_WEIGHTS"],
        help="weights of the biLM, path or URL",
    )
    subparser.add_argument(
        "--vocab-path", help="words, one per line, whose token layer is computed beforehand"
    )
    subparser.add_argument("--batch-size", type=_positive, default=64, help="sentences per batch")
    subparser.add_argument(
        "--cuda-device", type=int, default=-1, help="number of the GPU, -1 for the CPU"
    )
    subparser.add_argument(
        "--bfloat16",
        action="store_true",
        help="compute in bfloat16: faster where the processor has it, within 1 %% of float32",
    )


def _add_output_arguments(subparser: argparse.ArgumentParser) -> None:
    subparser.add_argument("--half", action="store_true", help="write float16: half the size")
    subparser.add_argument(
        "--compression",
        choices=["none", "gzip", "lzf"],
        default="none",
        help="compress losslessly; gzip is read everywhere, lzf is faster and read by h5py",
    )
    subparser.add_argument(
        "--forget-sentences", action="store_true", help="leave out `sentence_to_index`"
    )
    subparser.add_argument(
        "--use-sentence-keys",
        action="store_true",
        help="name each dataset by its sentence instead of its line, with '\u2215' (U+2215) for "
        "'/', '\u2400' (U+2400) for NUL and '\u2024' (U+2024) for a lone full stop; a repeated "
        "sentence is written once, an empty one not at all. Leaves out `sentence_to_index`",
    )
    subparser.add_argument(
        "--force",
        action="store_true",
        help="replace OUTPUT, or what was begun with other arguments or another text",
    )
    subparser.add_argument(
        "--file-friendly-logging",
        action="store_true",
        help="progress on lines of its own, every two seconds or more",
    )
