import argparse
import os
import sys

from allennlp.commands.subcommand import Subcommand
from allennlp.common import logging as common_logging
from allennlp.common.util import SigTermReceived
from overrides import overrides

from elmo_plugin.bilm.pretraining.text import find_shards
from elmo_plugin.bilm.vocabulary_file import write_vocabulary
from elmo_plugin.commands.elmo import add_decoding_errors
from elmo_plugin.tasks.bilm.vocabulary import count_and_choose
from elmo_plugin.util.errors import ConfigurationError

DESCRIPTION = """\
Count the words of a text and write the ones a biLM is to predict, most frequent first.

TEXT is tokenised text, one sentence per line, words separated by white space; plain or gzip, a
URL, a folder or a pattern in quotes. OUT receives one word<TAB>count per line:
    <S>, </S>   marks of a sentence, counted once per sentence
    <UNK>       stands for every word that is left out; its count is how often those occur
    then the words, in descending order of their counts, those of one count by their letters
Sampled softmax draws words by their place in this order, so a model refuses a file without it.

The text is read once, line by line: memory grows with the number of distinct words only.
"""

EPILOG = """\
example:
    allennlp elmo-vocabulary 'corpus/train-*.txt.gz' vocabulary.txt --size 100000
and in the configuration of the biLM:
    "vocabulary": { "type": "elmo-bilm", "file": "vocabulary.txt" }
"""


@Subcommand.register("elmo-vocabulary")
class VocabularyCommand(Subcommand):
    """
    `allennlp elmo-vocabulary`; everything is said by its `--help`, the work is done by
    `count_and_choose` and `write_vocabulary`.
    """

    # Spares users an --include-package that would do nothing.
    requires_plugins = False

    @overrides
    def add_subparser(self, parser: argparse._SubParsersAction) -> argparse.ArgumentParser:
        subparser = parser.add_parser(
            self.name,
            description=DESCRIPTION,
            epilog=EPILOG,
            help="Write the words that a biLM is trained to predict.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        subparser.add_argument("text", metavar="TEXT", nargs="+", help="a sentence per line")
        subparser.add_argument("output_file", metavar="OUT", help="the file to write")
        subparser.add_argument(
            "--size", type=int, metavar="N", help="at most N lines, <S>, </S> and <UNK> included"
        )
        subparser.add_argument(
            "--min-count",
            type=int,
            default=1,
            metavar="K",
            help="leave out words that occur less than K times",
        )
        add_decoding_errors(subparser)
        subparser.add_argument("--force", action="store_true", help="replace OUT")
        subparser.add_argument(
            "--file-friendly-logging",
            action="store_true",
            help="progress on lines of its own, every two seconds or more",
        )
        subparser.set_defaults(func=run_vocabulary)
        return subparser


def run_vocabulary(args: argparse.Namespace) -> None:
    """Runs the command; what a user can cause ends it with one sentence."""
    common_logging.FILE_FRIENDLY_LOGGING = args.file_friendly_logging
    try:
        print(_written(args))
    except (ConfigurationError, ValueError, OSError) as error:
        sys.exit(f"allennlp elmo-vocabulary: {error}")
    except (KeyboardInterrupt, SigTermReceived):
        sys.exit("allennlp elmo-vocabulary: stopped, nothing was written.")


def _written(args: argparse.Namespace) -> str:
    out = args.output_file
    # Found out before the text is read, which may take hours.
    folder = os.path.dirname(out) or "."
    if os.path.isdir(out) or not os.path.isdir(folder):
        raise ConfigurationError(f"{out} is a folder or lies in none; expected a file to write.")
    if not os.access(folder, os.W_OK):
        raise ConfigurationError(f"{out} cannot be written: you may not write in {folder}.")
    if os.path.exists(out):
        if any(os.path.samefile(out, text) for text in find_shards(args.text) if "://" not in text):
            raise ConfigurationError(f"{out} is part of the text; name another output.")
        if not args.force:
            raise ConfigurationError(f"{out} exists. Give --force to replace it, or another name.")
    entries = count_and_choose(args.text, args.size, args.min_count, args.decoding_errors)
    if not entries[3:]:
        raise ConfigurationError(
            f"Expected words besides <S>, </S> and <UNK> in {', '.join(args.text)}, found none "
            f"that occurs {args.min_count} times (--min-count)."
        )
    write_vocabulary(entries, out)
    (_, num_sentences), _, (_, num_unknown), *_ = entries
    num_tokens = sum(count for _, count in entries[2:])
    return (
        f"{out}: {len(entries)} words. Of {num_tokens} tokens in {num_sentences} sentences they "
        f"cover {1 - num_unknown / num_tokens:.2%}."
    )
