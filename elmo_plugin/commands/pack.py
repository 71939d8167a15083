"""
Pack a trained model into a small archive, to publish it or to send it.

ARCHIVE is the model.tar.gz or the folder of a training run; nothing in it is executed. OUT is read
like any other archive, has numbers in half precision, and leaves out the small biLM that comes with
this project. With --extra-words, of the words that were not in the training data only the most
frequent ones keep their vectors: evaluate OUT before you publish it.

example:
    %(prog)s out/ner_elmo/model.tar.gz ner.tar.gz
    allennlp predict ner.tar.gz sentences.jsonl
"""

import os
from dataclasses import dataclass
from typing import Optional

from elmo_plugin.bilm.files.pack import pack
from elmo_plugin.commands.arguments import flag, option, positional
from elmo_plugin.util.atomic_write import check_output
from elmo_plugin.util.errors import ConfigurationError

STOPPED = "stopped, nothing was written."


@dataclass(kw_only=True)
class Options:
    archive: str = positional("ARCHIVE", "model.tar.gz or folder")
    output_file: str = positional("OUT", "the .tar.gz to write")
    extra_words: Optional[int] = option(
        "how many words outside the training data keep their vectors (default: all)"
    )
    int8: bool = flag("store matrices as 8-bit integers; for task models only")
    force: bool = flag("replace OUT")


def run(args: Options) -> str:
    if args.extra_words is not None and args.extra_words < 0:
        raise ConfigurationError(f"--extra-words {args.extra_words}: expected 0 or more.")
    out = check_output(args.output_file, args.force)
    pack(args.archive, out, args.extra_words, args.int8)
    return f"{out}: {os.path.getsize(out) / 1e6:.1f} MB."
