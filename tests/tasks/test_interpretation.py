"""AllenNLP's interpreters and `capture_model_internals`, on every task with ELMo."""

import json
from functools import lru_cache

import pytest
import torch
from allennlp.data import Batch
from allennlp.interpret.attackers import Hotflip, InputReduction
from allennlp.interpret.saliency_interpreters import (
    IntegratedGradient,
    SimpleGradient,
    SmoothGradient,
)

from elmo_plugin import load_predictor, load_task
from tests.trained import train_task

# A line, the length of each text that the model reads, and the attacked field with its gradient.
LINES = {
    "coref": ({"text": "Anna lost her keys. She was late."}, [9], None),
    "ner": ({"sentence": "Ada Lovelace met Babbage in London."}, [7], ("tokens", 1)),
    "snli": (
        {"premise": "A dog runs in the park.", "hypothesis": "An animal moves."},
        [7, 4],
        ("hypothesis", 1),
    ),
    "squad": (
        {"passage": "Ada lives in London with her dog.", "question": "Where does Ada live?"},
        [5, 8],
        ("question", 2),
    ),
    "srl": ({"sentence": "The play began in London.", "predicates": [2]}, [6], ("tokens", 1)),
    "sst": ({"sentence": "A quiet triumph."}, [4], ("tokens", 1)),
}
each_task = pytest.mark.parametrize("task", LINES)
# Attackers change one text, and a document is a list of sentences.
each_attacked = pytest.mark.parametrize("task", [task for task in LINES if task != "coref"])


@pytest.fixture(scope="module")
def make_predictor(tmp_path_factory):
    # No model of SST comes with the package.
    return lru_cache(maxsize=None)(
        lambda task: (
            load_predictor(train_task(tmp_path_factory, "sst_elmo"))
            if task == "sst"
            else load_task(task)
        )
    )


@pytest.fixture
def predictor(task, make_predictor):
    """A task's; afterwards, nothing may be left of what was done with its model."""
    predictor, line = make_predictor(task), LINES[task][0]

    def state():
        parameters = {name: p.requires_grad for name, p in predictor._model.named_parameters()}
        modules = list(predictor._model.modules())
        hooks = [len(m._forward_hooks) + len(m._backward_hooks) for m in modules]
        return predictor.predict_json(line), parameters, sum(hooks)

    before = state()
    yield predictor
    assert state() == before


@pytest.mark.parametrize(
    "task, interpreter",
    [
        *((task, SimpleGradient) for task in LINES),
        ("ner", IntegratedGradient),
        ("coref", SmoothGradient),
    ],
)
def test_each_token_of_each_text_has_a_saliency(task, predictor, interpreter):
    line, lengths, _ = LINES[task]
    (found,) = interpreter(predictor).saliency_interpret_from_json(line).values()
    # AllenNLP numbers the texts from the last to the first.
    texts = [found[f"grad_input_{number}"] for number in range(len(found), 0, -1)]
    assert [len(text) for text in texts] == lengths
    assert all(sum(text) == pytest.approx(1.0) and min(text) >= 0.0 for text in texts)


@each_task
def test_gradients_are_those_of_the_vectors_with_elmo(task, predictor):
    (instance,) = predictor.json_to_labeled_instances(LINES[task][0])
    gradients, _ = predictor.get_gradients([instance])
    batch = Batch([instance])
    batch.index_instances(predictor._model.vocab)
    layer = predictor.get_interpretable_layer()

    def loss(change, chosen):
        calls = iter(range(len(gradients), 0, -1))
        hook = layer.register_forward_hook(
            lambda module, inputs, text: text + change if next(calls) == chosen else None
        )
        found = predictor._model.forward(**batch.as_tensor_dict())["loss"].item()
        hook.remove()
        return found

    for number in range(1, 1 + len(gradients)):
        gradient = torch.from_numpy(gradients[f"grad_input_{number}"])
        assert gradient.size(-1) == predictor._model.input_dim
        step = 0.01 * gradient / gradient.norm()
        difference = loss(step, number) - loss(-step, number)
        assert difference == pytest.approx(0.02 * gradient.norm().item(), rel=0.05)


@each_attacked
def test_input_reduction_keeps_the_prediction_with_fewer_words(task, predictor):
    line, _, (field, number) = LINES[task]
    reduction = InputReduction(predictor)
    found = reduction.attack_from_json(line, field, f"grad_input_{number}")
    ((kept,), original) = found["final"], found["original"]
    assert len(kept) < len(original) and [word for word in original if word in kept] == kept


@each_attacked
def test_hotflip_changes_the_prediction_with_other_words(task, predictor):
    line, _, (field, number) = LINES[task]
    found = Hotflip(predictor, max_tokens=500).attack_from_json(line, field, f"grad_input_{number}")
    ((flipped,), original) = found["final"], found["original"]
    assert len(flipped) == len(original) and flipped != original
    (instance,) = predictor.json_to_labeled_instances(line)
    before, (after,) = predictor._model.forward_on_instance(instance), found["outputs"]
    assert after["loss"] > before["loss"]
    changed = [key for key in ("answer", "label", "tags") if before.get(key) != after.get(key)]
    # The model of SST knows too few words for another label.
    assert changed or task == "sst"


def test_hotflip_embeds_a_word_without_the_others(make_predictor):
    hotflip = Hotflip(make_predictor("ner"), max_tokens=30)
    hotflip.initialize()
    alone = Hotflip(make_predictor("ner"), max_tokens=20)
    alone.initialize()
    torch.testing.assert_close(hotflip.embedding_matrix[:20], alone.embedding_matrix)


def test_an_interpreted_sentence_has_one_predicate(make_predictor):
    line = {"sentence": "The play began.", "predicates": [1, 2]}
    with pytest.raises(ValueError, match="expected one predicate to interpret, found 2"):
        make_predictor("srl").json_to_labeled_instances(line)


@each_task
def test_the_outputs_of_modules_can_be_written(task, predictor):
    with predictor.capture_model_internals() as internals:
        predictor.predict_json(LINES[task][0])
    names = [module["name"].partition("(")[0] for module in internals.values()]
    assert {"Bilm", "ElmoPlacement", "BasicTextFieldEmbedder"} <= set(names)
    json.dumps(internals)
