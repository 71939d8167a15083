import hashlib
import json
from argparse import ArgumentParser, Namespace
from contextlib import closing
from functools import partial
from os.path import samefile
from pathlib import Path
from typing import Any, Callable, Dict, List, Tuple

from elmo_plugin.analysis.minimal_pairs import JudgedPair, PairAccuracy, judge
from elmo_plugin.analysis.score_text import ScoredText, ScoreRows, score_text
from elmo_plugin.analysis.surprisal import DIRECTIONS, UNITS, Scorer
from elmo_plugin.bilm.files.softmax import SOFTMAX_FILE, find_softmax
from elmo_plugin.bilm.fingerprint import fingerprint
from elmo_plugin.bilm.pretraining.text import decoded, find_shards
from elmo_plugin.commands.bilm_arguments import (
    add_batch_arguments,
    add_bilm_arguments,
    chosen_bilm,
    counted,
    explained_limits,
    given_vocabulary,
    positive_number,
    text_path,
)
from elmo_plugin.commands.command import (
    add_decoding_errors,
    check_not_input,
    say,
)
from elmo_plugin.commands.markdown import markdown_table
from elmo_plugin.corpora.digested_text import DigestedText
from elmo_plugin.corpora.minimal_pairs import MinimalPair, read_minimal_pairs
from elmo_plugin.elmo.store.resumable import ResumableText
from elmo_plugin.elmo.token_batches import BATCHES_AHEAD
from elmo_plugin.util.atomic_write import UNFINISHED, check_output, resumable_file
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.progress import progress
from elmo_plugin.util.text_files import DecodedPath, find_file

DESCRIPTION = """\
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
"""

EPILOG = """\
example:
    %(prog)s sentences.txt --output surprisal.tsv
    %(prog)s sentences.txt --sentences --format jsonl --unit nats
    echo 'She drank a cup of _ .' | %(prog)s - --top-k 5
    %(prog)s --pairs blimp/*.jsonl
in Python:
    pandas.read_csv("surprisal.tsv", sep="\\t", quoting=csv.QUOTE_NONE, keep_default_na=False)
"""

STOPPED = "stopped. With --output, the same command continues where it stopped."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("input", metavar="INPUT", nargs="+", help="text, or minimal pairs")
    parser.add_argument("--output", metavar="FILE", help="the file to write (default: print)")
    parser.add_argument(
        "--format",
        choices=["tsv", "jsonl"],
        default="tsv",
        help="a table (default), or an object per line",
    )
    parser.add_argument(
        "--unit", choices=list(UNITS), default="bits", help="of surprisal (default: bits)"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--sentences", action="store_true", help="sums of sentences, not words")
    what.add_argument(
        "--top-k",
        type=positive_number,
        default=0,
        metavar="K",
        help="add the K most probable words",
    )
    what.add_argument("--pairs", action="store_true", help="INPUT has minimal pairs")
    add_bilm_arguments(parser)
    add_batch_arguments(parser)
    add_decoding_errors(parser)
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace FILE, or unfinished work that was begun with other options",
    )


def run(args: Namespace) -> str:
    kept = "Nothing is kept without --output"
    if args.output:
        args.output = check_output(resumable_file(args.output), args.force)
        kept = f"The lines done are kept in {args.output}{UNFINISHED}"
    with explained_limits(args.output or "the output", kept):
        return _score_pairs(args) if args.pairs else _score_text(args)


def _score_text(args: Namespace) -> str:
    if len(args.input) > 1:
        raise ConfigurationError(
            f"Expected one text, found {len(args.input)}: {', '.join(args.input)}. Score them one "
            "by one, or give --pairs if they are minimal pairs."
        )
    path = DecodedPath(text_path(args.input[0]), args.decoding_errors)
    if args.output and Path(args.output).exists() and samefile(find_file(path), args.output):
        raise ConfigurationError(f"{args.output} is the input; name another output.")
    empty = ConfigurationError(f"{args.input[0]}: expected a sentence per line, found no words.")
    # Before anything is written.
    whole = counted([path])
    if whole and not whole.num_tokens:
        raise empty
    total = whole.num_lines if whole else None
    text = DigestedText([path])
    scorer, identity = _scorer(args)
    rows = ScoreRows(args.format, args.unit, args.sentences, args.top_k > 0)
    score, done = partial(score_text, scorer, text, rows), ScoredText()
    with progress("sentences", total) as advance:
        if args.output is None:
            score(done, _print, "", args.batch_size, advance)
        else:
            names = ("format", "unit", "sentences", "top_k", "batch_size")
            settings = {**identity, **{name: getattr(args, name) for name in names}}
            with closing(ResumableText(Path(args.output), settings, args.force)) as file:
                done = ScoredText(**file.progress)
                score(done, file.commit, str(file.folder), args.batch_size, advance)
                if done.num_predictions:
                    file.finish()
    if not done.num_predictions:
        raise empty
    return _report(args, _summary(done))


def _summary(done: ScoredText) -> str:
    perplexity = done.perplexity()
    return (
        f"{done.num_lines:,} lines, {done.num_words:,} words, {done.num_predictions:,} predictions "
        f"per direction. Perplexity {perplexity['perplexity']:.6g}, forward "
        f"{perplexity['forward_perplexity']:.6g}, backward "
        f"{perplexity['backward_perplexity']:.6g}."
    )


def _report(args: Namespace, summary: str) -> str:
    """The report, if a file was written. Otherwise prints the summary to standard error."""
    if args.output is not None:
        return f"{args.output}: {summary}"
    say(summary)
    return ""


def _score_pairs(args: Namespace) -> str:
    # Before the biLM is loaded, to name a malformed pair first.
    shards = find_shards(decoded(args.input, args.decoding_errors))
    if args.output:
        check_not_input(Path(args.output), shards)
    pairs = [pair for shard in shards for pair in read_minimal_pairs(shard)]
    scorer, identity = _scorer(args)
    with progress("pairs", len(pairs)) as advance:
        if args.output is None:
            accuracy = _judge(args, scorer, pairs, {}, lambda *_: None, advance)
        else:
            settings = {**identity, "unit": args.unit, "batch": args.batch_size}
            settings["pairs_sha256"] = hashlib.sha256(repr(pairs).encode()).hexdigest()
            with closing(ResumableText(Path(args.output), settings, args.force)) as file:
                accuracy = _judge(args, scorer, pairs, file.progress, file.commit, advance)
                file.finish()
    rows = accuracy.table()
    if args.format == "jsonl":
        return "\n".join(json.dumps(row) for row in rows)
    return _table(rows)


def _judge(
    args: Namespace,
    scorer: Scorer,
    pairs: List[MinimalPair],
    done: Dict[str, Any],
    commit: Callable[[str, Dict[str, Any]], object],
    advance: Callable[[int], object],
) -> PairAccuracy:
    """Judges the pairs after those that are done, with a commit for each group of batches."""
    accuracy = PairAccuracy(done.get("counts"))
    first = done.get("num_pairs", 0)
    advance(first)
    size = BATCHES_AHEAD * args.batch_size // 2
    for start in range(first, len(pairs), size):
        group = pairs[start : start + size]
        lines = []
        for judged in judge(scorer, group, args.batch_size):
            accuracy.add(judged)
            lines.append(json.dumps(_judgement(judged, args.unit), ensure_ascii=False) + "\n")
        commit("".join(lines), {"num_pairs": start + len(group), "counts": accuracy.counts})
        advance(len(group))
    return accuracy


def _judgement(judged: JudgedPair, unit: str) -> Dict[str, Any]:
    size = UNITS[unit]
    found: Dict[str, Any] = {"UID": judged.pair.uid, "pairID": judged.pair.pair_id}
    for name, score in (("good", judged.good), ("bad", judged.bad)):
        found[f"sentence_{name}"] = " ".join(score.words)
        found[name] = {
            direction: round(score.surprisal(direction) * size, 6) for direction in DIRECTIONS
        }
    found["right"] = {direction: judged.is_right(direction) for direction in DIRECTIONS}
    return found


def _table(rows: List[Dict[str, Any]]) -> str:
    """Percentages of right pairs."""
    cells = [
        [
            row["kind"],
            row["name"],
            str(row["pairs"]),
            *(f"{100.0 * row[way]:.1f}" for way in DIRECTIONS),
        ]
        for row in rows
    ]
    return markdown_table(["kind", "name", "pairs", *DIRECTIONS], cells, num_left=2)


def _scorer(args: Namespace) -> Tuple[Scorer, Dict[str, str]]:
    """The scorer, and hashes of its language model for the settings of an output."""
    bilm = chosen_bilm(args, given_vocabulary(args))
    softmax = find_softmax(args.weight_file, bilm.options)
    if softmax is None:
        raise ConfigurationError(
            f"{args.weight_file} comes without a softmax: expected it in the file, or in "
            f"{SOFTMAX_FILE} beside it, with vocabulary.txt. `elmo export` writes both from the "
            "archive of a language model. Published biLMs have none."
        )
    digest = hashlib.sha256(softmax.weight.contiguous().numpy().tobytes())
    digest.update("\n".join(softmax.words).encode())
    identity = {"bilm_fingerprint": fingerprint(bilm), "softmax_sha256": digest.hexdigest()}
    return Scorer(bilm, softmax, args.top_k), identity


def _print(lines: str, _: Dict[str, Any]) -> None:
    print(lines, end="", flush=True)
