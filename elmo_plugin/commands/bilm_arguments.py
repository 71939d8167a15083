"""
The arguments that name a biLM and say how it is computed, for all commands that run one, and those
of the commands that write one.
"""

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional, Sequence, Union

import torch

from elmo_plugin.bilm import Bilm, load_bilm
from elmo_plugin.bilm.files.find import softmax_of_bilm
from elmo_plugin.bilm.files.folders import check_export_folder, save_bilm
from elmo_plugin.bilm.files.softmax import SoftmaxWeights
from elmo_plugin.bilm.pretraining.text import TextPath, decoded
from elmo_plugin.commands.arguments import (
    Device,
    PositiveInt,
    decoding_errors_option,
    flag,
    option,
    positional,
    tokenize_option,
)
from elmo_plugin.corpora.sentence_per_line import DigestedText
from elmo_plugin.corpora.tokenizer import tokenizer_of
from elmo_plugin.environment import chosen_bilm
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import STANDARD_INPUT, STDIN_PATH, WRITABLE_DTYPES, is_pipe
from elmo_plugin.util.text_files import DecodedPath


@dataclass(kw_only=True)
class BilmArguments:
    """The biLM. `load_bilm` sets what was not named to the default."""

    bilm: Optional[str] = option(
        "the biLM: a folder, zip or archive, or options.json with the weights beside it, as path "
        "or URL; a name that `elmo models` prints; or a repository of the Hugging Face Hub "
        "(default: ELMO_BILM)"
    )
    options_file: Optional[str] = option(
        "options of the biLM, path or URL, in place of --bilm (default: ELMO_OPTIONS)"
    )
    weight_file: Optional[str] = option("weights of the biLM, path or URL (default: ELMO_WEIGHTS)")
    device: Device = Device.option()
    bfloat16: bool = flag(
        "compute in bfloat16: faster where the processor has it, within 1 %% of float32"
    )

    def load_bilm(self) -> Bilm:
        num_gpus, has_mps = torch.cuda.device_count(), torch.backends.mps.is_available()
        if not (has_mps if self.device == "mps" else self.device.number < num_gpus):
            raise ConfigurationError(
                f"--device {self.device}: PyTorch finds {num_gpus} CUDA devices, numbered from 0, "
                f"and {'an' if has_mps else 'no'} MPS device. Leave it out to run on the CPU."
            )
        dtype = "bfloat16" if self.bfloat16 else "float32"
        name, weights = chosen_bilm(self.bilm, self.options_file, self.weight_file)
        if weights is None:
            self.bilm = str(name)
        else:
            self.options_file, self.weight_file = str(name), str(weights)
        return load_bilm(name, weights, dtype=dtype).to(self.device)

    def find_softmax(self) -> Optional[SoftmaxWeights]:
        """The softmax of the biLM that `load_bilm` has loaded; `None` if it comes without one."""
        return softmax_of_bilm(self.bilm or str(self.options_file), self.weight_file)


@dataclass(kw_only=True)
class TextBilmArguments(BilmArguments):
    """The biLM of a command that reads whole texts, and how it reads them."""

    tokenize: Optional[str] = tokenize_option("the text is raw: split its lines into words")
    batch_size: PositiveInt = option("sentences per batch", 64)
    decoding_errors: str = decoding_errors_option()

    def decoded(self, data_path: TextPath) -> List[DecodedPath]:
        """The parts of a path, see `Text`, as they are to be read."""
        if self.tokenize is not None:
            # Refuses a wrong language before anything is read.
            tokenizer_of(self.tokenize)
        return decoded(data_path, self.decoding_errors, self.tokenize)


@dataclass(kw_only=True)
class BilmOutput:
    """The files of a biLM to write, with the softmax of a language model."""

    out_dir: Path = positional("OUT_DIR", "folder to write")
    dtype: str = option(
        "float16 is half the size and exact to three digits",
        "float32",
        choices=WRITABLE_DTYPES,
    )
    force: bool = flag("replace such files in OUT_DIR")

    def check(self) -> None:
        """Before anything is read; raises the errors of `save_bilm` for the folder."""
        check_export_folder(self.out_dir, self.force)

    def save(self, bilm: Bilm, softmax: Optional[SoftmaxWeights]) -> str:
        """Writes the files and returns a sentence about them."""
        files = save_bilm(bilm, self.out_dir, softmax, self.dtype, self.force)
        size = sum(os.path.getsize(file) for file in files) / 1e6
        names = ", ".join(file.name for file in files)
        words = "" if softmax is None else f", {len(softmax.words)} words"
        return f"{self.out_dir}: {names} ({size:.1f} MB{words})."


def text_path(name: str) -> str:
    """
    The path of an input file; for `-`, of standard input. Refuses a file on standard input of which
    another program has read the beginning: opened by its path, it would be read from its start.
    """
    if name != STANDARD_INPUT:
        return name
    if stat.S_ISREG(os.fstat(0).st_mode) and (offset := os.lseek(0, 0, os.SEEK_CUR)):
        raise ConfigurationError(
            f"Standard input: expected a file from its start or a pipe, found a file at byte "
            f"{offset}. Put `cat |` before the command to read the rest."
        )
    return STDIN_PATH


def counted(paths: Sequence[Union[str, os.PathLike]]) -> Optional[DigestedText]:
    """The text, read to count it; `None` if a file is a pipe, which can be read only once."""
    if any(map(is_pipe, paths)):
        return None
    text = DigestedText(paths)
    text.read_all()
    return text
