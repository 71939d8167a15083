from argparse import ArgumentParser, Namespace
from dataclasses import asdict
from typing import Any, Dict, List, NamedTuple, Optional, Set

from elmo_plugin.analysis.word_senses import ALL, Answers, SenseProbe, SenseScore, words_of
from elmo_plugin.bilm import Bilm
from elmo_plugin.commands import probe_arguments
from elmo_plugin.commands.bilm_arguments import chosen_bilm
from elmo_plugin.commands.markdown import markdown_table
from elmo_plugin.commands.probe_arguments import (
    add_probe_arguments,
    corpus_files,
    representations,
    vector_folder,
    write_results,
)
from elmo_plugin.corpora.word_senses import SenseCorpus, SenseSentence, read_first_senses
from elmo_plugin.util.atomic_write import check_output
from elmo_plugin.util.bootstrap import BootstrappedScore, Difference
from elmo_plugin.util.progress import progress

DESCRIPTION = """\
Disambiguate words by the nearest sense in each frozen layer of a biLM, as in Table 5 of the ELMo
paper, and print the F1 of each test set and part of speech.

In each layer, a sense has the mean vector of its words in the training set. A word of the test
set gets the sense of its lemma and part of speech whose mean is nearest by cosine; if the training
set lacks the lemma, it gets the first sense of WordNet. Multi-word units are split at `_`, and
their vectors averaged. F1 is that of the evaluation framework of Raganato et al. (2017): an answer
is right if it is one of the gold senses. The interval of the F1 of all words is at 95 %, by a
bootstrap over sentences. *From the row above* is the difference of this F1 from the previous layer,
with the interval of a paired bootstrap.

Files are JSON lines, {"id", "tokens", "lemmas", "pos", "senses"}, or NAME.data.xml of that
framework, with NAME.gold.key.txt beside it. First senses are lemma<TAB>POS<TAB>sense key lines. By
default they are train.jsonl, test.jsonl and first_sense.tsv in ELMO_DATA/wsd.

Rows of the table: the first sense; the most frequent sense of the training set; static word
vectors; each layer of a random biLM of the same shape; each layer of the biLM. --cove adds the
layers of CoVe.

Vectors of annotated words are kept on the disk in half precision, 2 x layers x width bytes per word
and representation. RAM grows with the test set, with the annotated words of its lemmas (16 bytes
each) and, for static vectors, with the distinct words of the text.
"""

EPILOG = """\
example:
    %(prog)s --cache vectors --json senses.json
    %(prog)s --train semcor.data.xml --test ALL.data.xml --first-senses first_sense.tsv
"""

STOPPED = probe_arguments.STOPPED

# For each option, the name of its default file in `ELMO_DATA`.
_FILES = {"train": "train.jsonl", "test": "test.jsonl", "first-senses": "first_sense.tsv"}
# In the order in which the evaluation framework lists them.
_PARTS_OF_SPEECH = ("NOUN", "VERB", "ADJ", "ADV")


class _Row(NamedTuple):
    representation: str
    layer: str
    scores: Dict[str, SenseScore]
    f1: BootstrappedScore  # of all words
    from_previous: Optional[Difference]  # of this F1, from the previous layer


def add_arguments(parser: ArgumentParser) -> None:
    for name, what in (
        ("train", "sentences with senses to learn from"),
        ("test", "sentences with senses to predict"),
        ("first-senses", "the first sense of each lemma"),
    ):
        parser.add_argument(f"--{name}", metavar="FILE", help=what)
    add_probe_arguments(parser)


def run(args: Namespace) -> str:
    if args.json is not None:
        check_output(args.json, force=True)
    bilm = chosen_bilm(args)
    files = corpus_files(args, "wsd", _FILES)
    train, test = SenseCorpus(files["train"]), list(SenseCorpus(files["test"]))
    lemmas = {instance.lemma for sentence in test for instance in sentence.instances}
    first_senses = read_first_senses(files["first-senses"], lemmas)
    with vector_folder(args) as folder:
        probe = SenseProbe(train, test, first_senses, folder)
        rows = _rows(args, bilm, probe, train, test)
    write_results(
        args, bilm, {"files": files, **_counts(probe), "scores": [_as_dict(row) for row in rows]}
    )
    return _table(probe, rows)


def _rows(
    args: Namespace,
    bilm: Bilm,
    probe: SenseProbe,
    train: SenseCorpus,
    test: List[SenseSentence],
) -> List[_Row]:
    def words() -> Set[str]:
        corpora = (train, test)
        return {w for corpus in corpora for s in corpus for w in words_of(s.tokens)[0]}

    rows: List[_Row] = []

    def add(name: str, layer: str, answers: Answers) -> None:
        f1, difference = probe.f1(answers), None
        if rows and rows[-1].representation == name:
            difference = f1.minus(rows[-1].f1)
        rows.append(_Row(name, layer, probe.scores(answers), f1, difference))

    add("first sense", "", probe.first_senses())
    add("most frequent sense", "", probe.most_frequent_senses())
    for representation in representations(args, bilm, words):
        with progress(f"sentences, {representation.name}", probe.num_texts) as advance:
            for layer, answers in probe.nearest_senses(representation, advance):
                add(representation.name, layer, answers)
    return rows


def _groups(probe: SenseProbe) -> List[str]:
    """The columns of the table: test sets, parts of speech, all."""
    corpora = dict.fromkeys(corpus for corpus, _ in probe.instances)
    found = dict.fromkeys(instance.lemma[1] for _, instance in probe.instances)
    known = [pos for pos in _PARTS_OF_SPEECH if pos in found]
    others = [pos for pos in found if pos not in known]
    # A test set may have the name `all`, too.
    return list(dict.fromkeys([*corpora, *known, *others, ALL]))


def _table(probe: SenseProbe, rows: List[_Row]) -> str:
    groups = _groups(probe)
    num_words = probe.scores(probe.first_senses())
    counts = ["annotated words", "", *(str(num_words[group].num_words) for group in groups)]
    cells = [
        [
            row.representation,
            row.layer,
            *(f"{100 * row.scores[group].f1:.1f}" for group in groups),
            f"{100 * low:.1f} to {100 * high:.1f}",
            row.from_previous.in_percent(1) if row.from_previous else "",
        ]
        for row in rows
        for low, high in [row.f1.interval()]
    ]
    head = ["representation", "layer", *groups, f"{ALL}, 95 %", "from the row above, 95 %"]
    return markdown_table(head, [[*counts, "", ""], *cells], num_left=2)


def _counts(probe: SenseProbe) -> Dict[str, Any]:
    known = sum(instance.lemma in probe.counts for _, instance in probe.instances)
    return {
        "num_words": len(probe.instances),
        "num_words_with_lemma_in_training": known,
        "num_senses_in_training": sum(len(senses) for senses in probe.counts.values()),
    }


def _as_dict(row: _Row) -> Dict[str, Any]:
    return {
        "representation": row.representation,
        "layer": row.layer,
        "interval": row.f1.interval(),
        "samples": row.f1.rounded_samples(),
        "from_previous": row.from_previous and row.from_previous._asdict(),
        "scores": {
            group: {
                "f1": score.f1,
                "precision": score.precision,
                "recall": score.recall,
                **asdict(score),
            }
            for group, score in row.scores.items()
        },
    }
