"""
Counts the everyday inputs in `pretrained/tasks/everyday.json` that a model answers fully right, and
prints the others. An input counts as right if

- ner: all entities and their labels are as expected, and there is no other;
- srl: the verbs named are found, and have exactly the expected core roles (ARG0 to ARG5);
- coref: the clusters are as expected, by the texts of their mentions, and there is no other;
- snli: the label is as expected;
- squad: the answer is one of those expected, ignoring case, articles and punctuation;
- tagger: all tags are as expected.

    python scripts/everyday.py
    python scripts/everyday.py ner --archive out/ner/model.tar.gz
"""

import argparse
import json
import re
from typing import Any, Iterator, List, Tuple

from allennlp.predictors import Predictor

from elmo_plugin.archives import load_predictor
from elmo_plugin.corpora.tag_spans import tags_to_spans
from elmo_plugin.tasks.squad.metric import exact_match
from elmo_plugin.util.files import find_archive, shipped

INPUTS = shipped("pretrained/tasks/everyday.json")
# A continuation makes an argument another one; a reference (`R-ARG0`) does not.
_CORE_ROLE = re.compile(r"(C-)?ARG[0-5A]")


def answers(
    task: str, predictor: Predictor, inputs: List[dict]
) -> Iterator[Tuple[bool, dict, Any, Any]]:
    """Yields for each input whether it is answered right, itself, the expected answer and ours."""
    lines = [{name: line[name] for name in line if name != "expected"} for line in inputs]
    for line, asked, prediction in zip(inputs, lines, predictor.predict_batch_json(lines)):
        expected = line["expected"]
        found = _answer(task, prediction, expected)
        if task == "squad":
            is_right = any(exact_match(found, answer) for answer in expected)
        else:
            is_right = _comparable(found) == _comparable(expected)
        yield is_right, asked, expected, found


def _answer(task: str, prediction: dict, expected: Any) -> Any:
    """The prediction in the form of the expected answer."""
    if task == "ner":
        return [[entity["text"], entity["type"]] for entity in prediction["entities"]]
    if task == "srl":
        words = prediction["tokens"]
        frames = {words[frame["predicate"]]: frame["tags"] for frame in prediction["frames"]}
        return {verb: _roles(words, tags) for verb, tags in frames.items() if verb in expected}
    if task == "coref":
        return [[mention["text"] for mention in cluster] for cluster in prediction["clusters"]]
    if task == "tagger":
        return " ".join(prediction["tags"])
    return prediction["answer" if task == "squad" else "label"]


def _roles(words: List[str], tags: List[str]) -> dict:
    roles: dict = {}
    for span in tags_to_spans(tags):
        if _CORE_ROLE.fullmatch(span.label):
            roles.setdefault(span.label, []).append(" ".join(words[span.start : span.end + 1]))
    return {label: " / ".join(texts) for label, texts in roles.items()}


def _comparable(answer: Any) -> str:
    """An answer without the spaces that join its words: `Sarah O 'Neill`."""
    return json.dumps(answer, sort_keys=True).replace(" ", "")


def main() -> None:
    inputs = json.loads(INPUTS.read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"{', '.join(inputs)}, or all")
    parser.add_argument("--archive", help="another model of one task than the one that ships")
    arguments = parser.parse_args()
    tasks = arguments.tasks or list(inputs)
    if unknown := [task for task in tasks if task not in inputs]:
        parser.error(f"expected tasks of {', '.join(inputs)}, found {', '.join(unknown)}")
    if arguments.archive and len(tasks) != 1:
        parser.error("--archive needs one task")
    for task in tasks:
        predictor = load_predictor(find_archive(arguments.archive or task))
        counted = list(answers(task, predictor, inputs[task]))
        for is_right, asked, expected, found in counted:
            if not is_right:
                print(*(f"{name}: {text}" for name, text in asked.items()), sep="\n")
                for name, answer in (("expected", expected), ("found", found)):
                    print(f"    {name:8} {json.dumps(answer, ensure_ascii=False)}")
        print(f"{task}: {sum(each[0] for each in counted)} of {len(counted)} right\n")


if __name__ == "__main__":
    main()
