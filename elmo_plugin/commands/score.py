"""
Compute the surprisal of every word of a text, which is its negative log-likelihood under the biLM,
given the words before it (forward), after it (backward), and the mean of the two (both). It needs
the softmax of the biLM, softmax.hdf5 or softmax.safetensors beside its weights.

INPUT is tokenised text, one sentence per line, words separated by white space, or raw text with
--tokenize; plain or gzip, a URL, or - for standard input. Each sentence is scored by itself; empty
lines are left out. A row per word has its line and position, both from 1, whether the vocabulary
has it, and its surprisals. With --sentences, a row per sentence has its line, number of words,
surprisal and perplexity. Surprisals are in bits. docs/analysis.md explains the numbers.

With --pairs, INPUT is one or many files or folders of minimal pairs in the format of BLiMP, JSON
lines with `sentence_good` and `sentence_bad` (and `UID`, `linguistics_term`, `field`), raw or
tokenised text of English, or of the language that --tokenize names: the command prints how often
the good sentence is the more likely one.

If a run with --output is interrupted, the same command continues it. RAM grows with --batch-size,
the longest line and the vocabulary; with --pairs, with the pairs.

example:
    %(prog)s sentences.txt --output surprisal.tsv
    echo 'She drank a cup of tea .' | %(prog)s - --sentences
    %(prog)s --pairs blimp/*.jsonl
in Python:
    pandas.read_csv("surprisal.tsv", sep="\\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
"""

import hashlib
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from elmo_plugin.analysis.surprisal import (
    DIRECTIONS,
    ScoredText,
    Scorer,
    pair_accuracies,
    rows_of_sentence,
    rows_of_words,
    score_text,
)
from elmo_plugin.bilm import fingerprint
from elmo_plugin.bilm.files.softmax import SOFTMAX_FILE
from elmo_plugin.bilm.pretraining.text import find_shards
from elmo_plugin.commands.arguments import AT_MOST_ONE, flag, option, positional
from elmo_plugin.commands.bilm_arguments import TextBilmArguments, counted, text_path
from elmo_plugin.commands.command import check_not_input, say
from elmo_plugin.commands.metrics import markdown_table
from elmo_plugin.corpora.minimal_pairs import read_minimal_pairs
from elmo_plugin.corpora.sentence_per_line import DigestedText
from elmo_plugin.elmo.store.rows import ResumableText
from elmo_plugin.util.atomic_write import UNFINISHED, check_output, resumable_file
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress
from elmo_plugin.util.text_files import find_file

# Keeps the next lines of the output, and the progress after them.
Commit = Callable[[str, Dict[str, Any]], object]
STOPPED = "stopped. With --output, the same command continues where it stopped."


@dataclass(kw_only=True)
class Options(TextBilmArguments):
    input: List[str] = positional("INPUT", "text, or minimal pairs")
    output: Optional[Path] = option(
        "the file to write (default: print)", group=AT_MOST_ONE, metavar="FILE"
    )
    sentences: bool = flag("sums of sentences, not words")
    pairs: bool = flag("INPUT has minimal pairs", AT_MOST_ONE)
    force: bool = flag("replace FILE, or unfinished work that was begun with other options")


def run(args: Options) -> str:
    return _score_pairs(args) if args.pairs else _score_text(args)


@contextmanager
def _opened(args: Options, settings: Dict[str, Any]) -> Iterator[Tuple[Dict[str, Any], Commit]]:
    """Yields the progress of an interrupted call, and what commits lines to --output."""
    if args.output is None:
        yield {}, lambda lines, progress: print(lines, end="", flush=True)
        return
    with closing(ResumableText(args.output, settings, args.force)) as file:
        yield file.state["progress"], file.add
        file.export()


def _score_text(args: Options) -> str:
    if len(args.input) > 1:
        raise ConfigurationError(
            f"Expected one text, found {len(args.input)}: {', '.join(args.input)}. Score them one "
            "by one, or give --pairs if they are minimal pairs."
        )
    if args.output is not None:
        args.output = check_output(resumable_file(args.output), args.force)
    (path,) = args.decoded(text_path(args.input[0]))
    if args.output is not None:
        check_not_input(args.output, [find_file(path)])
    whole = counted([path])
    scorer, settings = _scorer(args)
    for name in ("sentences", "tokenize", "batch_size"):
        settings[name] = getattr(args, name)
    text, rows = DigestedText([path]), rows_of_sentence if args.sentences else rows_of_words
    total, location = whole.num_lines if whole else None, f"{args.output}{UNFINISHED}"
    with progress("sentences", total) as advance, _opened(args, settings) as (before, commit):
        done = ScoredText(**before)
        score_text(scorer, text, rows, done, commit, location, args.batch_size, advance)
        if not done.num_predictions:
            raise ConfigurationError(
                f"{args.input[0]}: expected a sentence per line, found no words."
            )
    perplexity = done.perplexity()
    summary = (
        f"{done.num_lines:,} lines, {done.num_words:,} words, {done.num_predictions:,} predictions "
        f"per direction. Perplexity {perplexity['perplexity']:.6g}, forward "
        f"{perplexity['forward_perplexity']:.6g}, backward "
        f"{perplexity['backward_perplexity']:.6g}."
    )
    if args.output is not None:
        return f"{args.output}: {summary}"
    say(summary)
    return ""


def _score_pairs(args: Options) -> str:
    # Before the biLM is loaded, to name a malformed pair first.
    shards = find_shards(args.decoded(args.input))
    pairs = [pair for shard in shards for pair in read_minimal_pairs(shard)]
    scorer, _ = _scorer(args)
    with progress("pairs", len(pairs)) as advance:
        accuracies = pair_accuracies(scorer, pairs, args.batch_size, advance)
    cells = [
        [each.kind, each.name, str(each.num_pairs), *(f"{100.0 * s:.1f}" for s in each.shares)]
        for each in accuracies
    ]
    return markdown_table(["kind", "name", "pairs", *DIRECTIONS], cells, num_left=2)


def _scorer(args: Options) -> Tuple[Scorer, Dict[str, Any]]:
    """The scorer, and hashes of its language model for the settings of an output."""
    bilm = args.load_bilm()
    softmax = args.find_softmax()
    if softmax is None:
        raise ConfigurationError(
            f"{args.weight_file or args.bilm} comes without a softmax: expected it in the file, or "
            f"in {SOFTMAX_FILE} beside it, with vocabulary.txt. `elmo export` writes both from the "
            "archive of a language model. Published biLMs have none."
        )
    digest = hashlib.sha256(softmax.weight.contiguous().numpy().tobytes())
    digest.update("\n".join(softmax.words).encode())
    identity = {"bilm_fingerprint": fingerprint(bilm), "softmax_sha256": digest.hexdigest()}
    return Scorer(bilm, softmax), identity
