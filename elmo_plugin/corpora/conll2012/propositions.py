"""Propositions in the bracket columns of the CoNLL-2005 shared task."""

from typing import List, Sequence, Tuple

__all__ = ["format_propositions"]


def format_propositions(
    num_tokens: int, predicates: Sequence[Tuple[int, str]], tags: Sequence[Sequence[str]]
) -> str:
    """
    Writes the propositions of a sentence as the CoNLL-2005 scorer `srl-eval.pl` reads them: a line
    per word with the predicate's lemma or `-`, then a bracket column per predicate.

    # Parameters

    num_tokens : `int`
    predicates : `Sequence[Tuple[int, str]]`
        Position and lemma of each predicate, in any order.
    tags : `Sequence[Sequence[str]]`
        The BIO tags of each predicate. An `I-` that continues nothing begins a span.

    # Returns

    `str`
        The lines, an empty one last.

    # Raises

    `ValueError`
        If the format cannot hold these propositions: two predicates at one word, a predicate
        outside the sentence, a lemma that is `-`, empty or holds blanks, or numbers of tags that
        differ from those of words and predicates.
    """
    if len(tags) != len(predicates) or any(len(column) != num_tokens for column in tags):
        raise ValueError(
            f"expected {len(predicates)} sequences of {num_tokens} tags, one per predicate, found "
            f"{len(tags)} of lengths {[len(column) for column in tags]}"
        )
    lemmas = dict(predicates)
    if len(lemmas) != len(predicates) or not all(0 <= index < num_tokens for index in lemmas):
        raise ValueError(
            f"expected predicates at different words below {num_tokens}, found them at "
            f"{[index for index, _ in predicates]}"
        )
    unusable = [lemma for lemma in lemmas.values() if lemma == "-" or lemma.split() != [lemma]]
    if unusable:
        raise ValueError(f"expected lemmas without blanks and other than '-', found {unusable}")
    # The scorer gives the k-th column to the k-th line with a lemma.
    order = sorted(range(len(predicates)), key=lambda column: predicates[column][0])
    columns = [_proposition_column(tags[column]) for column in order]
    lines = (
        " ".join([lemmas.get(row, "-"), *(column[row] for column in columns)])
        for row in range(num_tokens)
    )
    return "\n".join([*lines, "", ""])


def _proposition_column(tags: Sequence[str]) -> List[str]:
    cells = []
    for row, tag in enumerate(tags):
        label = tag[2:]
        before = tags[row - 1][2:] if row else ""
        after = tags[row + 1] if row + 1 < len(tags) else "O"
        begins = label and (tag[0] == "B" or label != before)
        ends = label and after != f"I-{label}"
        cells.append((f"({label}" if begins else "") + "*" + (")" if ends else ""))
    return cells
