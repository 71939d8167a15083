"""
Compute the surprisal of every word of a text, which is its negative log-likelihood under the biLM,
given the words before it (forward), after it (backward), and the mean of the two (both). It needs
the softmax of the biLM, softmax.hdf5 beside its weights.

INPUT is tokenised text, one sentence per line, words separated by white space; plain or gzip, a
URL, or - for standard input. Each sentence is scored by itself; empty lines are left out. Columns:
    line, position  counted from 1; position 0 is <S>, the last one </S>
    word, known     whether it is in the vocabulary; the surprisal of others is that of <UNK>
    forward, backward, both
With --sentences, one row per sentence: line, number of words, surprisal and perplexity, which
count the prediction of </S> (forward) or <S> (backward). The sums over a text give the perplexity
that `allennlp evaluate` prints. --top-k adds the most probable words at each position.

With --pairs, INPUT is one or many files or folders of minimal pairs in the format of BLiMP, JSON
lines with `sentence_good` and `sentence_bad` (and `UID`, `linguistics_term`, `field`), raw or
tokenised text: the command prints how often the good sentence is the more likely one. With
--output, the surprisals of each pair are written, too, as JSON lines.

If a run with --output is interrupted, the same command continues it. RAM grows with --batch-size,
the longest line and the vocabulary; with --pairs, with the pairs.

example:
    %(prog)s sentences.txt --output surprisal.tsv
    %(prog)s sentences.txt --sentences --format jsonl --unit nats
    echo 'She drank a cup of _ .' | %(prog)s - --top-k 5
    %(prog)s --pairs blimp/*.jsonl
in Python:
    pandas.read_csv("surprisal.tsv", sep="\\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
"""

import hashlib
import json
from contextlib import closing
from dataclasses import dataclass
from os.path import samefile
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Optional, Tuple

from elmo_plugin.analysis.minimal_pairs import JudgedPair, PairAccuracy, judge
from elmo_plugin.analysis.score_text import ScoredText, ScoreRows, score_text
from elmo_plugin.analysis.surprisal import DIRECTIONS, UNITS, Scorer
from elmo_plugin.bilm.files.softmax import SOFTMAX_FILE, find_softmax
from elmo_plugin.bilm.fingerprint import fingerprint
from elmo_plugin.bilm.pretraining.text import decoded, find_shards
from elmo_plugin.commands.arguments import (
    AT_MOST_ONE,
    PositiveInt,
    decoding_errors_option,
    flag,
    option,
    positional,
)
from elmo_plugin.commands.bilm_arguments import (
    TextBilmArguments,
    counted,
    explained_limits,
    text_path,
)
from elmo_plugin.commands.command import check_not_input, say
from elmo_plugin.commands.tables import markdown_table
from elmo_plugin.corpora.minimal_pairs import MinimalPair, read_minimal_pairs
from elmo_plugin.corpora.sentence_per_line import DigestedText
from elmo_plugin.elmo.store.resumable import ResumableText
from elmo_plugin.elmo.token_batches import BATCHES_AHEAD
from elmo_plugin.util.atomic_write import UNFINISHED, check_output, resumable_file
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress
from elmo_plugin.util.text_files import DecodedPath, find_file

STOPPED = "stopped. With --output, the same command continues where it stopped."


@dataclass(kw_only=True)
class Options:
    input: List[str] = positional("INPUT", "text, or minimal pairs")
    output: Optional[Path] = option("the file to write (default: print)", metavar="FILE")
    format: str = option(
        "a table (default), or an object per line", "tsv", choices=["tsv", "jsonl"]
    )
    unit: str = option("of surprisal (default: bits)", "bits", choices=list(UNITS))
    sentences: bool = flag("sums of sentences, not words", AT_MOST_ONE)
    top_k: PositiveInt = option("add the K most probable words", 0, AT_MOST_ONE, metavar="K")
    pairs: bool = flag("INPUT has minimal pairs", AT_MOST_ONE)
    bilm: TextBilmArguments
    decoding_errors: str = decoding_errors_option()
    force: bool = flag("replace FILE, or unfinished work that was begun with other options")


def run(args: Options) -> str:
    kept = "Nothing is kept without --output"
    if args.output:
        args.output = check_output(resumable_file(args.output), args.force)
        kept = f"The lines done are kept in {args.output}{UNFINISHED}"
    with explained_limits(args.output or "the output", kept):
        return _score_pairs(args) if args.pairs else _score_text(args)


def _opened(args: Options, settings: Dict[str, Any]) -> Any:
    """A `ResumableText`. Without --output, a stand-in that prints, but for --pairs does nothing."""
    if args.output is not None:
        return ResumableText(args.output, settings, args.force)
    commit = _do_nothing if args.pairs else _print
    return SimpleNamespace(
        progress={}, folder="", commit=commit, finish=_do_nothing, close=_do_nothing
    )


def _print(text: str, progress: Dict[str, Any]) -> None:
    print(text, end="", flush=True)


def _do_nothing(*_: object) -> None:
    pass


def _score_text(args: Options) -> str:
    if len(args.input) > 1:
        raise ConfigurationError(
            f"Expected one text, found {len(args.input)}: {', '.join(args.input)}. Score them one "
            "by one, or give --pairs if they are minimal pairs."
        )
    path = DecodedPath(text_path(args.input[0]), args.decoding_errors)
    if args.output and args.output.exists() and samefile(find_file(path), args.output):
        raise ConfigurationError(f"{args.output} is the input; name another output.")
    empty = ConfigurationError(f"{args.input[0]}: expected a sentence per line, found no words.")
    # Before anything is written.
    whole = counted([path])
    if whole and not whole.num_tokens:
        raise empty
    scorer, settings = _scorer(args)
    for name in ("format", "unit", "sentences", "top_k"):
        settings[name] = getattr(args, name)
    settings["batch_size"] = size = args.bilm.batch_size
    text = DigestedText([path])
    rows = ScoreRows(args.format, args.unit, args.sentences, args.top_k > 0)
    with (
        progress("sentences", whole.num_lines if whole else None) as advance,
        closing(_opened(args, settings)) as file,
    ):
        done = ScoredText(**file.progress)
        score_text(scorer, text, rows, done, file.commit, str(file.folder), size, advance)
        if not done.num_predictions:
            raise empty
        file.finish()
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
    shards = find_shards(decoded(args.input, args.decoding_errors))
    if args.output:
        check_not_input(args.output, shards)
    pairs = [pair for shard in shards for pair in read_minimal_pairs(shard)]
    scorer, settings = _scorer(args)
    settings |= {"unit": args.unit, "batch": args.bilm.batch_size}
    settings["pairs_sha256"] = hashlib.sha256(repr(pairs).encode()).hexdigest()
    with progress("pairs", len(pairs)) as advance, closing(_opened(args, settings)) as file:
        rows = _judge(args, scorer, pairs, file, advance).table()
        file.finish()
    if args.format == "jsonl":
        return "\n".join(json.dumps(row) for row in rows)
    # Percentages of right pairs.
    cells = [
        [
            row["kind"],
            row["name"],
            str(row["pairs"]),
            *(f"{100.0 * row[d]:.1f}" for d in DIRECTIONS),
        ]
        for row in rows
    ]
    return markdown_table(["kind", "name", "pairs", *DIRECTIONS], cells, num_left=2)


def _judge(
    args: Options,
    scorer: Scorer,
    pairs: List[MinimalPair],
    file: Any,
    advance: Callable[[int], object],
) -> PairAccuracy:
    """Judges the pairs that are not done yet, with a commit after each group of batches."""
    accuracy = PairAccuracy(file.progress.get("counts"))
    first = file.progress.get("num_pairs", 0)
    advance(first)
    size = BATCHES_AHEAD * args.bilm.batch_size // 2
    for start in range(first, len(pairs), size):
        group = pairs[start : start + size]
        lines = []
        for judged in judge(scorer, group, args.bilm.batch_size):
            accuracy.add(judged)
            lines.append(json.dumps(_judgement(judged, args.unit), ensure_ascii=False) + "\n")
        file.commit("".join(lines), {"num_pairs": start + len(group), "counts": accuracy.counts})
        advance(len(group))
    return accuracy


def _judgement(judged: JudgedPair, unit: str) -> Dict[str, Any]:
    found: Dict[str, Any] = {"UID": judged.pair.uid, "pairID": judged.pair.pair_id}
    for name, score in (("good", judged.good), ("bad", judged.bad)):
        found[f"sentence_{name}"] = " ".join(score.words)
        found[name] = {d: round(score.surprisal(d) * UNITS[unit], 6) for d in DIRECTIONS}
    found["right"] = {direction: judged.is_right(direction) for direction in DIRECTIONS}
    return found


def _scorer(args: Options) -> Tuple[Scorer, Dict[str, Any]]:
    """The scorer, and hashes of its language model for the settings of an output."""
    bilm = args.bilm.load(args.bilm.words(args.decoding_errors))
    softmax = find_softmax(str(args.bilm.weight_file), bilm.options)
    if softmax is None:
        raise ConfigurationError(
            f"{args.bilm.weight_file} comes without a softmax: expected it in the file, or in "
            f"{SOFTMAX_FILE} beside it, with vocabulary.txt. `elmo export` writes both from the "
            "archive of a language model. Published biLMs have none."
        )
    digest = hashlib.sha256(softmax.weight.contiguous().numpy().tobytes())
    digest.update("\n".join(softmax.words).encode())
    identity = {"bilm_fingerprint": fingerprint(bilm), "softmax_sha256": digest.hexdigest()}
    return Scorer(bilm, softmax, args.top_k), identity
