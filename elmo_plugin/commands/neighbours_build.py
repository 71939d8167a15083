"""
Write the index of a text: for each token and layer a vector of length 1, in half precision.

TEXT is tokenised text, one sentence per line, words separated by white space, or raw text with
--tokenize; plain or gzip, a URL, a folder or a pattern in quotes. FOLDER is new, or an index.
docs/analysis.md describes its files and says how large they are. RAM grows with --batch-size and
the longest line only. If the command is interrupted, even by kill -9 or a full disk, run it again:
it continues after the lines done.

example:
    %(prog)s 'corpus/train-*.txt.gz' contexts
    %(prog)s text.txt contexts --layers 2
"""

from dataclasses import dataclass
from pathlib import Path
from typing import List, Optional

from elmo_plugin.analysis.neighbours import build_index
from elmo_plugin.bilm.pretraining.text import find_shards
from elmo_plugin.commands.arguments import flag, option, positional
from elmo_plugin.commands.bilm_arguments import TextBilmArguments, counted
from elmo_plugin.util.progress import progress

STOPPED = "stopped. Run the same command again to continue."


@dataclass(kw_only=True)
class Options(TextBilmArguments):
    text: List[str] = positional("TEXT", "a sentence per line")
    folder: Path = positional("FOLDER", "folder to write")
    layers: Optional[List[int]] = option(
        "numbers of the layers (default: all but 0, the token layer, in which all occurrences "
        "of a word have the same vector)"
    )
    force: bool = flag("replace the index in FOLDER")


def run(args: Options) -> str:
    text = args.decoded(args.text)
    # Before the biLM is loaded, to name a missing text first.
    whole = counted(find_shards(text))
    bilm = args.load_bilm()
    with progress("lines", whole.num_lines if whole else None) as advance:
        summary = build_index(
            bilm, text, args.folder, args.layers, args.batch_size, args.force, advance
        )
    resumed = f" ({summary.num_resumed} of them earlier)" if summary.num_resumed else ""
    size = sum(path.stat().st_size for path in args.folder.iterdir()) / 1e6
    return (
        f"{args.folder}: {summary.num_contexts} contexts of {summary.num_lines} lines{resumed}, "
        f"{size:.1f} MB."
    )
