"""The arguments that name a biLM and say how it is computed, for all commands that run one."""

import os
import stat
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from contextlib import contextmanager
from typing import Iterator, List, Optional, Sequence, Union

import torch

from elmo_plugin.bilm import Bilm, load_bilm
from elmo_plugin.corpora.digested_text import DigestedText
from elmo_plugin.environment import bilm_files
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import NO_SPACE, is_pipe
from elmo_plugin.util.text_files import DecodedPath, numbered_lines


def add_bilm_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--options-file",
        help="options of the biLM, path or URL (default: ELMO_OPTIONS)",
    )
    parser.add_argument(
        "--weight-file",
        help="weights of the biLM, path or URL (default: ELMO_WEIGHTS)",
    )
    parser.add_argument(
        "--cuda-device",
        type=int,
        default=-1,
        metavar="N",
        help="number of the GPU (default: -1, the CPU)",
    )
    parser.add_argument(
        "--bfloat16",
        action="store_true",
        help="compute in bfloat16: faster where the processor has it, within 1 %% of float32",
    )


def add_batch_arguments(parser: ArgumentParser) -> None:
    """For commands that read whole texts; they also have `add_decoding_errors`."""
    parser.add_argument(
        "--vocab-path",
        help="file with one word per line, whose token layer is computed in advance",
    )
    parser.add_argument(
        "--batch-size", type=positive_number, default=64, help="sentences per batch (default: 64)"
    )


def chosen_bilm(args: Namespace, words: Sequence[str] = ()) -> Bilm:
    """
    The biLM of `add_bilm_arguments`, with the token layer of these words computed. Also sets the
    arguments that were left out to the files of the default.
    """
    if not -1 <= args.cuda_device < torch.cuda.device_count():
        raise ConfigurationError(
            f"--cuda-device {args.cuda_device}: PyTorch finds {torch.cuda.device_count()} CUDA "
            "devices, numbered from 0; -1 is the CPU. Leave it out to run on the CPU."
        )
    dtype = "bfloat16" if args.bfloat16 else "float32"
    args.options_file, args.weight_file = bilm_files(args.options_file, args.weight_file)
    bilm = load_bilm(args.options_file, args.weight_file, dtype=dtype)
    if args.cuda_device >= 0:
        bilm = bilm.to(torch.device("cuda", args.cuda_device))
    bilm.precompute(words)
    return bilm


def given_vocabulary(args: Namespace) -> List[str]:
    """The words of `--vocab-path`, without the counts that `elmo vocabulary` writes beside them."""
    if args.vocab_path is None:
        return []
    lines = numbered_lines(DecodedPath(args.vocab_path, args.decoding_errors), newline="\n")
    return [word for _, line in lines if (word := line.partition("\t")[0].strip())]


def text_path(name: str) -> str:
    """
    The path of an input file; that of standard input for `-`.

    # Raises

    `ConfigurationError`
        If standard input is a file of which another program has read the beginning: opened by its
        path, it would be read from its start.
    """
    if name != "-":
        return name
    if stat.S_ISREG(os.fstat(0).st_mode) and (offset := os.lseek(0, 0, os.SEEK_CUR)):
        raise ConfigurationError(
            f"Standard input: expected a file from its start or a pipe, found a file at byte "
            f"{offset}. Put `cat |` before the command to read the rest."
        )
    return "/dev/stdin"


def counted(paths: Sequence[Union[str, os.PathLike]]) -> Optional[DigestedText]:
    """The text, read to count it; `None` if a file is a pipe, which can be read only once."""
    if any(map(is_pipe, paths)):
        return None
    text = DigestedText(paths)
    text.read_all()
    return text


@contextmanager
def explained_limits(output: str, kept: str) -> Iterator[None]:
    """
    Raises an error that says what to do if the GPU is out of memory or the disk is full. `kept`
    says where the finished part is.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise ConfigurationError(
            "The GPU has too little memory. Lower --batch-size if the command has it, or leave out "
            "--cuda-device to run on the CPU."
        ) from error
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise ConfigurationError(
            f"no space left to write {output} ({error.strerror}). {kept}: free some space and run "
            "the same command again."
        ) from error


def positive_number(text: str) -> int:
    """A type for `add_argument`: a whole number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"expected a whole number above 0, found {text}")
    return int(text)
