"""
A biLM as plain float64 arithmetic over one sentence at a time, for any options: nothing of
`elmo_plugin.bilm` but the names and layout of bilm-tf's weight files.
"""

import random
from typing import Any, Dict, List, Optional, Tuple

import h5py
import numpy
import torch

Arrays = Dict[str, numpy.ndarray]
# Hidden and cell per (direction, layer).
States = Dict[Tuple[int, int], Tuple[numpy.ndarray, numpy.ndarray]]

ALPHABET = "abcdefgXYZ-'.éßλжあ🙂"


def read_arrays(weight_file) -> Arrays:
    arrays: Arrays = {}

    def collect(name, item):
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[...].astype("float64")

    with h5py.File(weight_file, "r") as opened:
        opened.visititems(collect)
    return arrays


class SlowBilm:
    def __init__(self, options: Dict[str, Any], arrays: Arrays) -> None:
        self.cnn, self.lstm = options.get("char_cnn"), options["lstm"]
        # Of token embeddings.
        self.words = options.get("vocabulary")
        self.directions = (0, 1) if options.get("bidirectional", True) else (0,)
        self.arrays = arrays

    def layers(self, words: List[str], states: Optional[States] = None) -> torch.Tensor:
        """Shape `(num_layers, num_tokens + 2, output_dim)`."""
        return self.run(words, states)[0]

    def run(self, words: List[str], states: Optional[States] = None) -> Tuple[torch.Tensor, States]:
        """The layers, and the states after the sentence."""
        layers, finals = self.run_apart(words, states)
        return torch.from_numpy(numpy.stack(layers)), finals

    def run_apart(
        self, words: List[str], states: Optional[States] = None
    ) -> Tuple[List[numpy.ndarray], States]:
        """Layers that need not be of one width."""
        tokens = numpy.stack([self._token(word) for word in ["<S>", *words, "</S>"]])
        layers, finals = [[tokens] for _ in self.directions], {}
        for direction in self.directions:
            for layer in range(self.lstm["n_layers"]):
                key = (direction, layer)
                inputs = layers[direction][-1][:: -1 if direction else 1]
                outputs, finals[key] = self._recur(key, inputs, (states or {}).get(key))
                if layer > 0 and self.lstm["use_skip_connections"]:
                    outputs = outputs + inputs
                layers[direction].append(outputs[:: -1 if direction else 1])
        return [numpy.concatenate(pair, axis=1) for pair in zip(*layers)], finals

    def _recur(self, key, inputs, state):
        name = "RNN_{}/RNN/MultiRNNCell/Cell{}/LSTMCell/".format(*key)
        joined, bias = (self.arrays[name + part] for part in ("W_0", "B"))
        project = self.arrays.get(name + "W_P_0")
        output_dim = len(joined) - inputs.shape[1]
        hidden, cell = state or (numpy.zeros(output_dim), numpy.zeros(len(bias) // 4))
        outputs = []
        for x in inputs:
            i, g, f, o = numpy.split(numpy.append(x, hidden) @ joined + bias, 4)
            cell = _clip(_sigmoid(f + 1) * cell + _sigmoid(i) * numpy.tanh(g), self.lstm, "cell")
            hidden = _sigmoid(o) * numpy.tanh(cell)
            if project is not None:
                hidden = _clip(hidden @ project, self.lstm, "proj")
            outputs.append(hidden)
        return numpy.stack(outputs), (hidden, cell)

    def _token(self, word: str) -> numpy.ndarray:
        if self.cnn is None:
            known = word if word in self.words else "<UNK>"
            return self.arrays["embedding"][self.words.index(known)]
        characters = self.arrays["char_embed"][self._ids(word)]
        activate = numpy.tanh if self.cnn["activation"] == "tanh" else _relu
        features = []
        for number, (width, _) in enumerate(self.cnn["filters"]):
            kernel = self.arrays[f"CNN/W_cnn_{number}"][0]
            windows = [
                numpy.tensordot(characters[start : start + width], kernel, 2)
                for start in range(len(characters) - width + 1)
            ]
            features.append(numpy.max(windows, axis=0) + self.arrays[f"CNN/b_cnn_{number}"])
        x = activate(numpy.concatenate(features))
        for number in range(self.cnn["n_highway"]):
            gate, new = (
                x @ self.arrays[f"CNN_high_{number}/W_{part}"]
                + self.arrays[f"CNN_high_{number}/b_{part}"]
                for part in ("carry", "transform")
            )
            x = x + _sigmoid(gate) * (_relu(new) - x)
        if "CNN_proj/W_proj" in self.arrays:
            x = x @ self.arrays["CNN_proj/W_proj"] + self.arrays["CNN_proj/b_proj"]
        return x

    def _ids(self, word: str) -> List[int]:
        """Rows of `char_embed`, which has none for padding between sentences."""
        size = self.cnn["max_characters_per_token"]
        units = list(word.encode("utf-8", "ignore"))
        if word in ("<S>", "</S>"):
            units = [256 + (word == "</S>")]
        ids = [258, *units[: size - 2], 259]
        return ids + [260] * (size - len(ids))


def _clip(x: numpy.ndarray, lstm: Dict[str, Any], what: str) -> numpy.ndarray:
    bound = lstm.get(f"{what}_clip")
    return numpy.clip(x, -bound, bound) if bound else x


def _relu(x: numpy.ndarray) -> numpy.ndarray:
    return numpy.maximum(x, 0)


def _sigmoid(x: numpy.ndarray) -> numpy.ndarray:
    return 1 / (1 + numpy.exp(-x))


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    """Norm of the difference as a part of the norm of what was expected."""
    assert found.shape == expected.shape
    found, expected = found.detach().double(), expected.detach().double()
    return float((found - expected).norm() / expected.norm())


def assert_layers_equal(found: torch.Tensor, expected: torch.Tensor, most: float = 1e-5) -> None:
    """Compares layer by layer: a small error in a small layer must not hide."""
    assert len(found) == len(expected)
    for layer, pair in enumerate(zip(found, expected)):
        assert relative_error(*pair) < most, f"layer {layer}"


def random_words(generator: random.Random, num_tokens: int) -> List[str]:
    """Words of 0 to 12 letters, a few of them much longer."""
    longest = [generator.choice([3, 12, 12, 80]) for _ in range(num_tokens)]
    return [
        "".join(generator.choices(ALPHABET, k=generator.randrange(length))) for length in longest
    ]


def random_batch(generator: random.Random, batch_size: int, longest: int) -> List[List[str]]:
    """Sentences of 0 to `longest` words; the first has at least one."""
    lengths = [generator.randint(0, longest) for _ in range(batch_size)]
    lengths[0] = lengths[0] or 1
    return [random_words(generator, num_tokens) for num_tokens in lengths]
