import json
import math
from pathlib import Path

import numpy
import pytest
import torch
from allennlp.common import Params
from allennlp.common.checks import ConfigurationError
from allennlp.common.testing import ModelTestCase
from allennlp.data import Batch
from allennlp.data.token_indexers import SingleIdTokenIndexer
from allennlp.models import Model

from elmo_plugin.bilm.character_indexer import CharacterIndexer
from elmo_plugin.tasks.translation import TranslationReader
from tests.tasks.batches import make_batch, placement
from tests.tasks.translation.slow import SlowTranslation

FIXTURES = Path(__file__).parents[3] / "fixtures"
VAL = FIXTURES / "corpora/mt/val.en"


class TestTraining(ModelTestCase):
    def test_the_model_trains_saves_and_loads(self):
        loader = "{ batch_size: 6 }"
        param_file = self.TEST_DIR / "experiment.jsonnet"
        param_file.write_text(
            f"(import '{FIXTURES}/experiments/translation.jsonnet')"
            f" {{ data_loader: {loader}, validation_data_loader: {loader} }}"
        )
        self.set_up_model(param_file, VAL)
        self.ensure_model_can_train_save_and_load(
            self.param_file, overrides=json.dumps({"trainer.num_epochs": 1})
        )


@pytest.fixture(scope="module")
def instances():
    indexers = {"words": SingleIdTokenIndexer(), "elmo": CharacterIndexer()}
    return list(TranslationReader(token_indexers=indexers).read(VAL))


def build(vocab, **settings):
    """A small model of random weights, so large that attention and gates choose."""
    torch.manual_seed(0)
    words = {"type": "embedding", "embedding_dim": 6}
    model = Model.from_params(
        vocab=vocab,
        params=Params(
            {
                "type": "elmo-translation",
                "text_field_embedder": {"token_embedders": {"words": words}},
                "hidden_size": 5,
                "decoder_dim": 7,
                "target_embedding_dim": 4,
                **settings,
            }
        ),
    )
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)
    return model


def ids(tensors, field, namespace):
    """The ids of each sentence, without padding."""
    rows = tensors[field][namespace]["tokens"]
    return [[index for index in row if index] for row in rows.tolist()]


def test_loss_and_perplexity_are_those_of_the_equations_step_by_step(vocab, instances):
    model = build(vocab).eval()
    chosen = sorted(instances, key=lambda instance: len(instance["source"]))
    chosen = [chosen[0], chosen[12], chosen[-1]]
    assert len({len(instance["source"]) for instance in chosen}) == 3
    tensors = make_batch(vocab, chosen, elmo=False)
    with torch.no_grad():
        loss = model(**tensors)["loss"].item()
    nats, num_words = [], 0
    for source, target in zip(ids(tensors, "source", "words"), ids(tensors, "target", "tokens")):
        slow = SlowTranslation(model, source)
        nats.append(0.0)
        for word, following in zip(target, target[1:]):
            nats[-1] -= slow.next_log_probabilities(word)[following]
            num_words += 1
    assert loss == pytest.approx(sum(nats) / 3, rel=1e-5)
    found = model.get_metrics(reset=True)
    assert found["perplexity"] == pytest.approx(math.exp(sum(nats) / num_words), rel=1e-5)


def test_a_beam_of_one_takes_the_most_probable_word_at_each_step(vocab, instances):
    model = build(vocab, beam_size=1, max_decoding_steps=6).eval()
    tensors = make_batch(vocab, instances[:5], elmo=False)
    with torch.no_grad():
        outputs = model(**tensors)
    names = vocab.get_index_to_token_vocabulary("target_tokens")
    start, end = (vocab.get_token_index(f"@{mark}@", "target_tokens") for mark in ("start", "end"))
    for row, source in enumerate(ids(tensors, "source", "words")):
        slow, expected = SlowTranslation(model, source), [start]
        while len(expected) <= 6 and expected[-1] != end:
            scores = slow.next_log_probabilities(expected[-1])
            scores[[0, 1, start]] = -numpy.inf
            expected.append(int(scores.argmax()))
        expected = [word for word in expected[1:] if word != end]
        assert outputs["predicted_ids"][row] == expected
        text = model.make_output_human_readable(outputs)["translation"][row]
        assert text == " ".join(names[word] for word in expected)


def test_a_wider_beam_finds_translations_that_are_no_less_probable(vocab, instances):
    """Of sentences of two words, a beam as wide as the vocabulary finds the most probable one."""
    model = build(vocab, max_decoding_steps=2, beam_size=vocab.get_vocab_size("target_tokens"))
    tensors = make_batch(vocab, instances[:1], elmo=False)
    with torch.no_grad():
        (found,) = model.eval()(**tensors)["predicted_ids"]
    (source,) = ids(tensors, "source", "words")
    start, end = (vocab.get_token_index(f"@{mark}@", "target_tokens") for mark in ("start", "end"))
    best, expected = -numpy.inf, []
    words = [w for w in range(vocab.get_vocab_size("target_tokens")) if w not in (0, 1, start)]
    for first in words:
        slow = SlowTranslation(model, source)
        total = slow.next_log_probabilities(start)[first]
        rest = {w: s for w, s in enumerate(slow.next_log_probabilities(first)) if w in words}
        second = end if first == end else max(rest, key=rest.get)
        total += 0.0 if first == end else rest[second]
        if total > best:
            best, expected = total, [word for word in (first, second) if word != end]
    assert found == expected


def loss_and_translations(model, vocab, chosen):
    batch = Batch(chosen)
    batch.index_instances(vocab)
    tensors = batch.as_tensor_dict()
    for field in tensors.values():
        if isinstance(field, dict):
            field.pop("elmo", None)
    with torch.no_grad():
        outputs = model(**tensors)
    return outputs["loss"], outputs["predicted_ids"]


def test_padding_and_the_order_of_the_batch_change_nothing(vocab, instances):
    model = build(vocab).eval()
    chosen = instances[:6]
    loss, translations = loss_and_translations(model, vocab, chosen)
    back_loss, back = loss_and_translations(model, vocab, chosen[::-1])
    alone = [loss_and_translations(model, vocab, [instance]) for instance in chosen]
    torch.testing.assert_close(loss, back_loss)
    torch.testing.assert_close(loss, torch.stack([each[0] for each in alone]).mean())
    assert translations == back[::-1] == [each[1][0] for each in alone]


def test_the_model_can_learn_a_corpus_by_heart(vocab, instances):
    torch.manual_seed(0)
    sizes = {"hidden_size": 24, "decoder_dim": 32, "target_embedding_dim": 16}
    model = build(vocab, dropout=0.0, **sizes)
    tensors = make_batch(vocab, instances[:12], elmo=False)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(120):
        optimizer.zero_grad()
        model.train()(**tensors)["loss"].backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        optimizer.step()
    assert model.get_metrics(reset=True) == {}
    model.eval()(**tensors)
    found = model.get_metrics(reset=True)
    assert found["BLEU"] == pytest.approx(100.0) and found["perplexity"] < 1.1


def test_bfloat16_is_near_in_training_and_prediction(vocab, instances, with_bfloat16):
    tensors = make_batch(vocab, instances[:6], elmo=False)
    model, half = (build(vocab, dtype=dtype, dropout=0.0) for dtype in ("float32", "bfloat16"))
    with torch.autocast("cpu", torch.bfloat16):
        mixed = model.train()(**tensors)["loss"]
    mixed.backward()
    assert all(parameter.grad.dtype == torch.float32 for parameter in model.parameters())
    exact = model.eval()(**tensors)["loss"]
    predicted = half.eval()(**tensors)
    for loss in (mixed, predicted["loss"]):
        assert loss != exact and loss.dtype == torch.float32
        torch.testing.assert_close(loss, exact, rtol=0.02, atol=0)
    assert len(predicted["predicted_ids"]) == 6


@pytest.mark.parametrize("at, read, attended", [("input", 38, 10), ("both", 38, 42)])
def test_elmo_can_be_added(vocab, instances, at, read, attended):
    model = build(vocab, placement=placement(at))
    assert model.cove_encoder.input_dim == read
    assert model.decoder.query.out_features == attended
    model(**make_batch(vocab, instances[:3]))["loss"].backward()


def test_training_without_translations_and_misspelt_settings_are_refused(vocab):
    reader = TranslationReader()
    instance = reader.text_to_instance(reader.tokens("The mayor."))
    model = build(vocab).train()
    reader.apply_token_indexers(instance)
    tensors = make_batch(vocab, [instance], elmo=False)
    with pytest.raises(ConfigurationError, match="elmo-translation: training needs translations"):
        model(**tensors)
    assert "loss" not in model.eval()(**tensors)
    assert model.get_metrics(reset=True) == {}
    with pytest.raises(ConfigurationError, match="hidden_sise"):
        build(vocab, hidden_sise=3)
