"""The translation model by plain loops in float64, one sentence and one step at a time."""

import numpy


class SlowTranslation:
    """
    McCann et al. (2017), section 3, with the weights of a model, for the ids of one sentence.
    """

    def __init__(self, model, source_ids):
        self.weights = {name: value.double().numpy() for name, value in model.state_dict().items()}
        vectors = self.weights["text_field_embedder.token_embedder_words.weight"]
        inputs = [vectors[index] for index in source_ids]
        self.state = []
        for layer in (0, 1):
            forward = self._encode("forward", layer, inputs)
            backward = self._encode("backward", layer, inputs[::-1])[::-1]
            inputs = [numpy.concatenate(pair) for pair in zip(forward, backward)]
            end = numpy.concatenate([forward[-1], backward[0]])
            hidden = self._linear(f"bridges.{layer}", end)
            self.state.append((hidden, numpy.zeros_like(hidden)))
        self.encoded = inputs
        self.attentional = numpy.zeros(self.weights["decoder.combination.bias"].shape)

    def next_log_probabilities(self, word):
        """Of the words that may follow, after a step with this word."""
        embedded = self.weights["decoder.embedding.weight"][word]
        inputs = numpy.concatenate([embedded, self.attentional])
        for layer, (hidden, cell) in enumerate(self.state):
            name = f"decoder.cells.{layer}"
            gates = self.weights[f"{name}.weight_ih"] @ inputs + self.weights[f"{name}.bias_ih"]
            gates = gates + self.weights[f"{name}.weight_hh"] @ hidden
            gates = gates + self.weights[f"{name}.bias_hh"]
            self.state[layer] = lstm(gates, cell)
            inputs = self.state[layer][0]
        query = self._linear("decoder.query", inputs)
        powers = [numpy.exp(query @ vector) for vector in self.encoded]
        context = sum(power / sum(powers) * vector for power, vector in zip(powers, self.encoded))
        both = numpy.concatenate([context, inputs])
        self.attentional = numpy.tanh(self._linear("decoder.combination", both))
        scores = self._linear("decoder.output", self.attentional)
        return scores - numpy.log(numpy.exp(scores).sum())

    def _encode(self, direction, layer, inputs):
        name = f"cove_encoder.{direction}_layers.{layer}"
        weight, recurrent = (self.weights[f"{name}.{part}.weight"] for part in PARTS)
        hidden = cell = numpy.zeros(recurrent.shape[1])
        outputs = []
        for vector in inputs:
            gates = weight @ vector + recurrent @ hidden + self.weights[f"{name}.bias"]
            hidden, cell = lstm(gates, cell)
            outputs.append(hidden)
        return outputs

    def _linear(self, name, vector):
        return self.weights[f"{name}.weight"] @ vector + self.weights[f"{name}.bias"]


PARTS = ("input", "recurrent")


def lstm(gates, cell):
    enter, forget, new, out = numpy.split(gates, 4)
    cell = sigmoid(forget) * cell + sigmoid(enter) * numpy.tanh(new)
    return sigmoid(out) * numpy.tanh(cell), cell


def sigmoid(values):
    return 1.0 / (1.0 + numpy.exp(-values))
