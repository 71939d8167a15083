"""The jsonnet of an experiment that varies one of the project's: the corpus and some settings."""

import json
import os
from typing import Any, Dict, List, Optional, Sequence

from elmo_plugin.environment import chosen_bilm, setting, width_and_case
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped
from elmo_plugin.util.text_files import find_file

EXPERIMENTS = shipped("experiments")
#: Of each task there is an experiment with and one without ELMo.
TASKS = sorted(path.stem.removesuffix("_elmo") for path in EXPERIMENTS.glob("*_elmo.jsonnet"))


def experiment_jsonnet(
    task: str,
    corpus: Dict[str, Optional[str]],
    *,
    with_elmo: bool = True,
    bilm: Optional[str] = None,
    vectors: Optional[str] = None,
    seed: Optional[int] = None,
    settings: Sequence[str] = (),
    cuda_device: Optional[int] = None,
) -> str:
    """
    An experiment of `task`, one of `TASKS`. It names all that the environment would otherwise
    decide: biLM, word vectors and seed. `corpus` has the paths of `train`, `dev` and `test`.
    `settings` are texts like `elmo.dropout=0.2`. Raises `ConfigurationError` if one is not, or if
    the file of word vectors is none, and `FileNotFoundError` if it does not exist.
    """
    corpus = {part: path and _absolute(path) for part, path in corpus.items()}
    library = _json(str(EXPERIMENTS / "lib/words.libsonnet"))
    varied: Dict[str, Any] = {
        "corpus": _json(corpus),
        "words": f"(import {library}).with_file(super.words, {_json(_described(vectors))})",
        "random_seed": _json(int(setting("ELMO_SEED")) if seed is None else seed),
    }
    if with_elmo:
        found, weights = chosen_bilm(bilm)
        files = {"bilm": found}
        if weights is not None:
            files = {"bilm": None, "options_file": found, "weight_file": weights}
        varied["elmo"] = {n: _json(path and _absolute(str(path))) for n, path in files.items()}
    for given in settings:
        _insert(varied, given)
    fields: Dict[str, Any] = {"settings": varied}
    if corpus["test"]:
        # The words of the test corpus do not join the vocabulary.
        vocabulary = ["train", "validation"] if corpus["dev"] else ["train"]
        fields["test_data_path"] = _json(corpus["test"])
        fields["evaluate_on_test"] = "true"
        fields["datasets_for_vocab_creation"] = _json(vocabulary)
    if cuda_device is not None:
        fields["trainer"] = {"cuda_device": _json(cuda_device)}
    base = _json(str(EXPERIMENTS / f"{task}{'_elmo' if with_elmo else ''}.jsonnet"))
    lines = [f"// Written by elmo train {task}.", f"(import {base}) {{"]
    return "\n".join([*lines, *_members(fields, "  "), "}", ""])


def _insert(settings: Dict[str, Any], given: str) -> None:
    """Adds `name=value`; a name with dots is of a setting within another one."""
    name, equals, value = given.partition("=")
    *outer, name = name.split(".")
    if not equals or not name:
        raise ConfigurationError(f"--set: expected NAME=VALUE such as batch_size=8, found {given}.")
    for each in outer:
        if not isinstance(settings.get(each), dict):
            settings[each] = {}
        settings = settings[each]
    try:
        settings[name] = _json(json.loads(value))
    except ValueError:
        settings[name] = _json(value)


def _members(fields: Dict[str, Any], indent: str) -> List[str]:
    lines = []
    for name, value in fields.items():
        name = name if name.isidentifier() and name != "local" else _json(name)
        if isinstance(value, dict):
            lines += [f"{indent}{name}+: {{", *_members(value, f"{indent}  "), f"{indent}}},"]
        else:
            lines.append(f"{indent}{name}: {value},")
    return lines


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _absolute(path: str) -> str:
    """A URL, or the name of a biLM, stays as it is."""
    path = os.path.expanduser(path)
    return os.path.abspath(path) if os.path.exists(path) or os.path.exists(f"{path}.gz") else path


def _described(path: Optional[str]) -> Optional[Dict[str, Any]]:
    path = setting("ELMO_GLOVE") if path is None else path
    if not path:
        return None
    found = width_and_case(find_file(path))
    if found is None:
        raise ConfigurationError(f"{path}: expected word vectors in GloVe's format, found none.")
    return {"file": _absolute(path), "dim": found[0], "cased": found[1]}
