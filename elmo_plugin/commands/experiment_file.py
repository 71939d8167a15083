"""The jsonnet of an experiment that varies one of the project's: the corpus and some settings."""

import json
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

from allennlp.common.params import evaluate_snippet

from elmo_plugin.corpora.tagged_words import span_columns
from elmo_plugin.environment import chosen_bilm, setting, width_and_case
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped
from elmo_plugin.util.text_files import find_file

EXPERIMENTS = shipped("experiments")
# Whether its tags are of spans is seen from the corpus.
_TAGGER = "tagger"
#: Of each task there is an experiment with and one without ELMo.
TASKS = sorted(path.stem.removesuffix("_elmo") for path in EXPERIMENTS.glob("*_elmo.jsonnet"))


def make_experiment(
    task: str,
    train: str,
    *,
    dev: Optional[str] = None,
    test: Optional[str] = None,
    with_elmo: bool = True,
    bilm: Optional[str] = None,
    vectors: Optional[str] = None,
    seed: Optional[int] = None,
    settings: Sequence[str] = (),
    cuda_device: Optional[int] = None,
) -> Tuple[str, Dict[str, Any]]:
    """
    The jsonnet of an experiment of `task`, one of `TASKS`, and what it evaluates to. It names all
    that the environment would otherwise decide: biLM, word vectors and seed. `settings` are texts
    like `elmo.dropout=0.2`. Raises `ConfigurationError` if one is not, the task needs `dev`, or a
    file has no word vectors, and `FileNotFoundError` if a file does not exist.
    """
    train = _corpus_path(train)
    corpus = {"train": train, "dev": dev and _corpus_path(dev), "test": test and _corpus_path(test)}
    library = _json(str(EXPERIMENTS / "lib/words.libsonnet"))
    varied: Dict[str, Any] = {
        "corpus": _json(corpus),
        "words": f"(import {library}).with_file(super.words, {_json(_described(vectors))})",
        "random_seed": _json(int(setting("ELMO_SEED")) if seed is None else seed),
    }
    if with_elmo:
        found, weights = chosen_bilm(bilm)
        varied["elmo"] = {"bilm": _json(_absolute(str(found)))}
        if weights is not None:
            files = {"options_file": found, "weight_file": weights}
            varied["elmo"] = {n: _json(_absolute(str(path))) for n, path in files.items()}
            varied["elmo"]["bilm"] = "null"
    for given in settings:
        if not with_elmo and given.startswith("elmo."):
            raise ConfigurationError(
                f"--set {given}: a model without ELMo has no such setting. Leave out --no-elmo."
            )
        _insert(varied, given)
    fields: Dict[str, Any] = {"settings": varied}
    if cuda_device is not None:
        fields["trainer"] = {"cuda_device": _json(cuda_device)}
    base = _json(str(EXPERIMENTS / f"{task}{'_elmo' if with_elmo else ''}.jsonnet"))
    start = [f"// Written by elmo train {task}.", f"(import {base}) {{"]

    def jsonnet() -> str:
        return "\n".join([*start, *_members(fields, "  "), "}", ""])

    variables = {name: value for name, value in os.environ.items() if name.startswith("ELMO_")}
    if task == _TAGGER:
        spans = span_columns(train)
        variables.update(ELMO_TRAIN=train, ELMO_TRAIN_SPANS=" ".join(map(str, spans)))
    params = json.loads(evaluate_snippet("experiment.jsonnet", jsonnet(), ext_vars=variables))
    if task == _TAGGER:
        varied["tags"] = _json(params["model"].get("tags", "spans"))
    if not params.get("validation_data_path"):
        raise ConfigurationError(f"{task} needs a corpus that chooses the best epoch: add --dev.")
    return jsonnet(), params


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


def _corpus_path(path: str) -> str:
    return path if "://" in path else os.path.abspath(find_file(path))


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
