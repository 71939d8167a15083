import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, Iterable, List, Optional, Sequence, Union

from elmo_plugin.analysis.layer_weights import stored_layer_weights
from elmo_plugin.bilm.files.trained import TrainedModel
from elmo_plugin.elmo import Elmo
from elmo_plugin.util.errors import ConfigurationError
from elmo_plugin.util.files import shipped_archives


@dataclass(frozen=True)
class Limits:
    """Limits of one request. They bound memory and time."""

    #: Size of the body.
    max_bytes: int = 64 * 1024
    #: Words that a model reads to answer it. A sentence counts once for each predicate.
    max_words: int = 1000
    #: Length of one word.
    max_characters: int = 200

    def check_words(self, texts: Sequence[Sequence[str]]) -> None:
        """Raises `TooLarge` if there are too many words, or if a word is too long."""
        num_words = sum(map(len, texts))
        if num_words > self.max_words:
            raise TooLarge(
                f"the request: expected at most {self.max_words} words for a model to read, found "
                f"{num_words}. Send parts of the text, or fewer predicates of a sentence."
            )
        longest = max((len(word) for words in texts for word in words), default=0)
        if longest > self.max_characters:
            raise TooLarge(
                f"the request: expected words of at most {self.max_characters} characters, found "
                f"one of {longest}. Leave it out, or split it."
            )


class TooLarge(ValueError):
    """A request is above a limit. The message says which."""

    status = 413


class ServedTask:
    """
    Answers requests with the `TaskPredictor` of a trained model. Requests and answers are the JSON
    lines of `allennlp predict`. `layer_weights` lists `at`, `weights` and `gamma` of each scalar
    mix over biLM layers. For the `card` see `read_card`.
    """

    def __init__(
        self,
        predictor: Any,
        limits: Limits,
        layer_weights: Sequence[Dict[str, Any]] = (),
        card: Optional[Dict[str, Any]] = None,
    ) -> None:
        self.predictor = predictor
        self.layer_weights = layer_weights
        self.card = card
        self._limits = limits

    def description(self) -> Dict[str, Any]:
        """Returns what the page shows about the task."""
        names = ("title", "summary", "example", "page")
        shown = {name: getattr(self.predictor, name) for name in names}
        return {**shown, "layer_weights": self.layer_weights, "card": self.card}

    def warm_up(self, batch_size: int) -> None:
        """Answers the example, to compile kernels and to notice a broken model at the start."""
        for size in (1, batch_size):
            outputs = self.predictor.predict_batch_json([self.predictor.example] * size)
            self.predictor.dump_line(outputs[0])

    def read(self, request: str) -> Dict[str, Any]:
        """Parses a request, and checks its form and its length."""
        line = self.predictor.load_request(request)
        # Before another model reads it, and with what that model has found.
        self._limits.check_words(self.predictor.texts(line))
        line = self.predictor.completed(line)
        self._limits.check_words(self.predictor.texts(line))
        return line

    def answer(self, lines: List[Dict[str, Any]]) -> List[str]:
        """Returns what `allennlp predict` writes for each line."""
        return list(map(self.predictor.dump_line, self.predictor.predict_batch_json(lines)))

    def draw(self, lines: List[Dict[str, Any]]) -> List[str]:
        """
        Returns what the page draws for each line: JSON, the fields of each `Part`, and the `spaces`
        in the text before each of its words.
        """
        outputs = self.predictor.predict_batch_json(lines)
        return [json.dumps(self._drawn(*each)) for each in zip(lines, outputs)]

    def _drawn(self, line: Dict[str, Any], output: Any) -> List[Dict[str, Any]]:
        fields = (line.get(name) for name in self.predictor.example)
        text, end = "\n".join(each for each in fields if isinstance(each, str)), 0
        drawn = [part._asdict() for part in self.predictor.draw(output)]
        for part in drawn:
            if words := part.get("words"):
                # It continues the text after the part before it, or begins again.
                start = end if _spaces(words, text, end) else 0
                spaces = _spaces(words, text, start) or [" "] * len(words)
                end = start + sum(map(len, [*words, *spaces]))
                part["spaces"] = spaces
        return drawn


def _spaces(words: Sequence[str], text: str, start: int) -> Optional[List[str]]:
    """The white space before each word in a text, or `None` if they do not follow `start`."""
    spaces = []
    for word in words:
        place = text.find(word, start)
        if place < 0 or text[start:place].strip():
            return None
        spaces.append(text[start:place])
        start = place + len(word)
    return spaces


def read_card(archive: Union[str, os.PathLike]) -> Optional[Dict[str, Any]]:
    """The columns of the table and the known failures in the README.md of a shipped archive."""
    path = Path(archive).resolve()
    if path not in shipped_archives().values():
        return None
    text = path.with_name("README.md").read_text(encoding="utf-8")
    text = re.sub(r"`|\[([^]]*)\]\([^)]*\)", r"\1", text)
    rows = re.findall(r"(?m)^\| (\w[^|]*) \| ([^|]+) \|$", text)
    items = re.findall(r"(?m)^- (.+(?:\n  .+)*)", text.partition("Known failures:")[2])
    return {"rows": rows, "failures": [" ".join(item.split()) for item in items]}


def load_tasks(
    archives: Iterable[Union[str, os.PathLike]],
    load_predictor: Callable[[Union[str, os.PathLike]], Any],
    limits: Limits,
) -> Dict[str, ServedTask]:
    """
    Loads trained models, at most one per task, and turns off their caches of layers. The keys are
    the registered names of the tasks without `elmo-`. `load_predictor` is
    `elmo_plugin.load_predictor` or a partial call of it. Raises `ConfigurationError` if an archive
    cannot be loaded, has no task's model, or repeats the task of another.
    """
    tasks: Dict[str, ServedTask] = {}
    for archive in archives:
        predictor = load_predictor(archive)
        model = predictor._model
        task = str(model.default_predictor).removeprefix("elmo-")
        if not hasattr(predictor, "example"):
            raise ConfigurationError(
                f"{archive}: expected a model of one of the project's tasks, found "
                f"{type(model).__name__}. Leave it out."
            )
        if task in tasks:
            raise ConfigurationError(
                f"{archive}: expected one archive of the task {task}, found a second one."
            )
        for module in model.modules():
            if isinstance(module, Elmo):
                # Requests must not be stored on disk.
                module.leave_cache()
        mixes = stored_layer_weights(
            TrainedModel(model.state_dict(), str(archive), predictor.config)
        )
        weights = [{"at": mix.at, "weights": mix.weights, "gamma": mix.gamma} for mix in mixes]
        tasks[task] = ServedTask(predictor, limits, weights, read_card(archive))
    return tasks
