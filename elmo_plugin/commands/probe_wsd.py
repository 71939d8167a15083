"""
Disambiguate words by the nearest sense in each frozen layer of a biLM, as in Table 5 of the ELMo
paper, and print the F1 of each test set and part of speech.

In each layer, a sense has the mean vector of its words in the training set. A word of the test
set gets the sense of its lemma and part of speech whose mean is nearest by cosine; if the training
set lacks the lemma, it gets the first sense of WordNet. Vectors take 2 x layers x width bytes per
annotated word and representation on the disk. docs/analysis.md explains the table.

Files are JSON lines, {"id", "tokens", "lemmas", "pos", "senses"}, or NAME.data.xml of the
framework of Raganato et al. (2017), with NAME.gold.key.txt beside it. First senses are
lemma<TAB>POS<TAB>sense key lines. By default they are train.jsonl, test.jsonl and first_sense.tsv
in ELMO_DATA/wsd.

example:
    %(prog)s --cache vectors --json senses.json
    %(prog)s --train semcor.data.xml --test ALL.data.xml --first-senses first_sense.tsv
"""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, Iterator, List, Optional, Set, Tuple

from elmo_plugin.analysis.word_senses import ALL, Answers, SenseProbe, words_of
from elmo_plugin.bilm import Bilm
from elmo_plugin.commands.arguments import option
from elmo_plugin.commands.metrics import markdown_table
from elmo_plugin.commands.probe import STOPPED, ProbeArguments, run_probe  # noqa: F401
from elmo_plugin.corpora.word_senses import SenseCorpus, read_first_senses
from elmo_plugin.util.bootstrap import BootstrappedScore
from elmo_plugin.util.progress import progress

# For each option, the name of its default file in `ELMO_DATA`.
_FILES = {"train": "train.jsonl", "test": "test.jsonl", "first-senses": "first_sense.tsv"}
# In the order in which the evaluation framework lists them.
_PARTS_OF_SPEECH = ("NOUN", "VERB", "ADJ", "ADV")


@dataclass(kw_only=True)
class Options(ProbeArguments):
    train: Optional[str] = option("sentences with senses to learn from", metavar="FILE")
    test: Optional[str] = option("sentences with senses to predict", metavar="FILE")
    first_senses: Optional[str] = option("the first sense of each lemma", metavar="FILE")


def run(args: Options) -> str:
    return run_probe(args, "wsd", _FILES, _probe)


def _probe(
    args: Options, files: Dict[str, str], bilm: Bilm, folder: Path
) -> Tuple[Dict[str, Any], str]:
    train, test = SenseCorpus(files["train"]), list(SenseCorpus(files["test"]))
    lemmas = {instance.lemma for sentence in test for instance in sentence.instances}
    probe = SenseProbe(train, test, read_first_senses(files["first-senses"], lemmas), folder)

    def words() -> Set[str]:
        return {w for corpus in (train, test) for s in corpus for w in words_of(s.tokens)[0]}

    def answered() -> Iterator[Tuple[str, str, Answers]]:
        yield "first sense", "", probe.first_senses()
        yield "most frequent sense", "", probe.most_frequent_senses()
        for representation in args.chosen(bilm, words):
            with progress(f"sentences, {representation.name}", probe.num_texts) as advance:
                for layer, answers in probe.nearest_senses(representation, advance):
                    yield representation.name, layer, answers

    scores, table = _compared(probe, answered())
    known = sum(instance.lemma in probe.counts for _, instance in probe.instances)
    results = {
        "num_words": len(probe.instances),
        "num_words_with_lemma_in_training": known,
        "num_senses_in_training": sum(map(len, probe.counts.values())),
        "scores": scores,
    }
    return results, table


def _compared(
    probe: SenseProbe, answered: Iterable[Tuple[str, str, Answers]]
) -> Tuple[List[Dict[str, Any]], str]:
    """
    The scores of each layer for --json, and the table: one column per test set and part of speech,
    and one for all words.
    """
    corpora = [corpus for corpus, _ in probe.instances]
    found = dict.fromkeys(instance.lemma[1] for _, instance in probe.instances)
    known = [pos for pos in _PARTS_OF_SPEECH if pos in found]
    # A test set may have the name `all`, too.
    groups = list(dict.fromkeys([*corpora, *known, *found, ALL]))
    rows: List[Dict[str, Any]] = []
    cells: List[List[str]] = []
    # The F1 of all words with the previous layer of each representation.
    previous: Dict[str, BootstrappedScore] = {}
    for name, layer, answers in answered:
        scores, f1 = probe.scores(answers), probe.f1(answers)
        change = f1.minus(previous[name]) if name in previous else None
        previous[name] = f1
        rows.append(
            {
                "representation": name,
                "layer": layer,
                "interval": f1.interval(),
                "samples": f1.rounded_samples(),
                "from_previous": change and change._asdict(),
                "scores": {g: {"f1": s.f1, **asdict(s)} for g, s in scores.items()},
            }
        )
        shown = [f"{100 * scores[group].f1:.1f}" for group in groups]
        low, high = (f"{100 * bound:.1f}" for bound in f1.interval())
        cells.append(
            [name, layer, *shown, f"{low} to {high}", change.in_percent(1) if change else ""]
        )
    counts = ["annotated words", "", *(str(scores[group].num_words) for group in groups), "", ""]
    head = ["representation", "layer", *groups, f"{ALL}, 95 %", "from the row above, 95 %"]
    return rows, markdown_table(head, [counts, *cells], num_left=2)
