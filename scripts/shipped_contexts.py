"""
Chooses contexts of frequent words in a text, one tokenised sentence per line, and writes their
vectors under the shipped biLM: the nearest contexts that `elmo serve` finds without `--neighbours`.

    python scripts/shipped_contexts.py $ELMO_DATA/lm/large/heldout.txt.gz contexts.npz
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy

from elmo_plugin.analysis.neighbours import ContextIndex, build_index, read_query
from elmo_plugin.bilm import load_bilm
from elmo_plugin.util.atomic_write import atomic_write
from elmo_plugin.util.text_files import numbered_lines

NUM_CONTEXTS = 5_900
CONTEXTS_PER_WORD = 4
# Words with several senses have more contexts: those of these queries.
QUERIES = "fixtures/queries/senses.txt"
CONTEXTS_PER_SENSE_WORD = 30
# Sentences that are read at a glance.
LENGTHS = range(6, 26)
WORD = re.compile(r"[^\W\d_]+|n't")


def quotas(sentences):
    """How many contexts to take of each word: the most frequent words, until there are enough."""
    counts = Counter(word for words in sentences for word in words if WORD.fullmatch(word))
    lines = Path(QUERIES).read_text(encoding="utf-8").splitlines()
    queries = [query.words[query.position] for query in map(read_query, lines)]
    most = {word: min(counts[word], CONTEXTS_PER_SENSE_WORD) for word in sorted({*queries})}
    for word, count in counts.most_common():
        number = min(count, CONTEXTS_PER_WORD)
        if word not in most and sum(most.values()) + number <= NUM_CONTEXTS:
            most[word] = number
    return most


def choose(sentences):
    """Sentences, and the positions to take of each: first those with the most words to take."""
    missing = quotas(sentences)
    # The sort is stable: sentences of equal shares stay in the order of the text.
    by_share = sorted(sentences, key=lambda words: -sum(w in missing for w in words) / len(words))
    chosen = {}
    for words in by_share:
        places = {word: position for position, word in enumerate(words) if missing.get(word)}
        missing.update({word: missing[word] - 1 for word in places})
        if places:
            chosen[words] = sorted(places.values())
    return chosen


def main(text, out):
    # Without repeated sentences, with the numbers of their lines.
    lines = {tuple(line.split()): number for number, line in numbered_lines(text)}
    chosen = choose([words for words in lines if len(words) in LENGTHS])
    with TemporaryDirectory() as name:
        folder = Path(name)
        sentences = "".join(f"{' '.join(words)}\n" for words in chosen)
        (folder / "text").write_text(sentences, encoding="utf-8")
        build_index(load_bilm("shipped-small"), [folder / "text"], folder / "index")
        index = ContextIndex(folder / "index")
        arrays = {"text": numpy.fromfile(folder / "index/text.txt", "u1")}
        table = numpy.load(folder / "index/sentences.npy")
        starts = [0, *table[:-1, 2].tolist()]
        rows = [start + n for start, each in zip(starts, chosen.values()) for n in each]
        for layer, vectors in index.layers.items():
            kept = vectors[rows].astype("f4")
            scales = 127 / abs(kept).max(axis=1, keepdims=True)
            arrays[f"layer_{layer}"] = (kept * scales).round().astype("i1")
    arrays["positions"] = numpy.array([n for each in chosen.values() for n in each], "u1")
    table[:, 0] = [lines[words] for words in chosen]
    table[:, 2] = numpy.cumsum([len(each) for each in chosen.values()])
    names = ("bilm_fingerprint", "warm_up", "computed_in", "layers")
    arrays["sentences"] = table
    arrays["settings"] = numpy.array(json.dumps({name: index.settings[name] for name in names}))
    with atomic_write(out) as unfinished, open(unfinished, "wb") as file:
        numpy.savez_compressed(file, **arrays)
    size = Path(out).stat().st_size
    print(f"{len(rows):,} contexts in {len(chosen):,} sentences, {size:,} bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
