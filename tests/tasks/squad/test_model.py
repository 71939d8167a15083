import pytest
import torch
from allennlp.common.checks import ConfigurationError

import elmo_plugin.plugin  # noqa: F401
from elmo_plugin.corpora.squad import Answer
from elmo_plugin.tasks.squad.model import best_spans
from tests.tasks.small import build, make_batch, make_reader, placement, read
from tests.tasks.squad import oracle


def asked(reader, question, passage, answers=()):
    instance = reader.text_to_instance(question, passage, answers)
    reader.apply_token_indexers(instance)
    return instance


def restated(model, alone):
    """The two sets of logits of one question, the attentions by hand."""
    encoded = []
    for name in ("question", "passage"):
        text = model.placement(alone[name])
        embedded = text.at_input(model.text_field_embedder(text.words))
        mask = torch.ones(embedded.shape[:2], dtype=torch.bool)
        encoded.append(text.at_output(model.encoder(embedded, mask))[0].tolist())
    merged = torch.tensor(
        [oracle.bi_attention(model.bi_attention, encoded[1], encoded[0])], dtype=torch.float64
    )
    within = model.residual_encoder(merged, mask)[0].tolist()
    modelled = merged + torch.tensor(oracle.self_attention(model.self_attention, within))
    started = model.start_encoder(modelled, mask)
    ended = model.end_encoder(torch.cat([modelled, started], dim=2), mask)
    return model.start_projection(started)[0, :, 0], model.end_projection(ended)[0, :, 0]


@pytest.mark.parametrize("at", [None, "input", "output", "both"])
def test_the_answer_is_that_of_the_equations(vocab, instances, at):
    torch.manual_seed(0)
    encoder = {"type": "gru", "hidden_size": 5, "bidirectional": True}
    sizes = {"max_answer_length": 4, "num_best": 7}
    model = build("squad", vocab, encoder=encoder, placement=placement(at), **sizes)
    model = model.double().eval()
    chosen = instances[3:9:2]
    with torch.no_grad():
        # So large that answers are not equally likely.
        model.start_projection.weight.mul_(20)
        model.end_projection.weight.mul_(20)
        batch = model(**make_batch(vocab, chosen, elmo=at is not None))
        losses = []
        for row, instance in enumerate(chosen):
            alone = make_batch(vocab, [instance], elmo=at is not None)
            starts, ends = restated(model, alone)
            expected = oracle.spans(starts.tolist(), ends.tolist(), 4)[:7]
            found = batch["best_spans"][row].tolist()
            assert found == [[first, last] for _, first, last in expected]
            probabilities = torch.tensor([each[0] for each in expected], dtype=torch.float64)
            torch.testing.assert_close(batch["best_span_probabilities"][row], probabilities)
            first, last = alone["answer_span"][0]
            losses.append(-starts.log_softmax(0)[first] - ends.log_softmax(0)[last])
    torch.testing.assert_close(batch["loss"], torch.stack(losses).mean())


@pytest.mark.parametrize("by_sentence", [False, True])
def test_each_passage_is_encoded_once_for_all_its_questions(vocab, by_sentence):
    model = build("squad", vocab, placement=placement("both")).eval()
    reader, sizes = make_reader("squad", by_sentence=by_sentence), []
    passages = ["Ada lives here. She writes.", "It rains."]
    asked_of = [
        ("Who?", passages[0]),
        ("What?", passages[1]),
        ("Where?", passages[0]),
        ("What does she do?", passages[0]),
    ]
    instances = [asked(reader, *each, [Answer(each[1][:2], 0)]) for each in asked_of]
    model.encoder.register_forward_hook(lambda _, inputs, __: sizes.append(len(inputs[0])))
    name = "best_span_probabilities"
    with torch.no_grad():
        together = model(**make_batch(vocab, instances))[name]
        assert sizes == [4, 2]
        for row, instance in enumerate(instances):
            torch.testing.assert_close(
                together[row], model(**make_batch(vocab, [instance]))[name][0]
            )
    sizes.clear()
    model.train()(**make_batch(vocab, instances))
    assert sizes == [4, 4]


def test_a_passage_of_one_token_has_one_answer(vocab, reader):
    model = build("squad", vocab, placement=placement("both")).eval()
    instance = asked(reader, "Why?", "Because")
    outputs = model.forward_on_instance(instance)
    assert outputs["answer"] == "Because"
    assert outputs["best_spans"].tolist() == [[0, 0]] + [[-1, -1]] * 19
    assert outputs["best_span_probabilities"].tolist() == [1.0] + [0.0] * 19
    learned = model.train()(**make_batch(vocab, [instance]), answer_span=torch.zeros(1, 2).long())
    learned["loss"].backward()
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    assert gradients and all(gradient.isfinite().all() for gradient in gradients)


def test_sentences_can_be_read_apart(vocab, instances):
    model = build("squad", vocab, placement=placement("both")).eval()
    apart = read("squad", by_sentence=True)
    batch = make_batch(vocab, apart[:4])
    with torch.no_grad():
        whole = model(**make_batch(vocab, instances[:4]))["loss"]
        assert not torch.allclose(model(**batch)["loss"], whole)
        batch["passage_sentences"].clamp_(max=0)
        torch.testing.assert_close(model(**batch)["loss"], whole)
        # Without the biLM, they do not matter.
        model, batches = build("squad", vocab).eval(), (instances[:4], apart[:4])
        losses = [model(**make_batch(vocab, each, elmo=False))["loss"] for each in batches]
        assert torch.equal(*losses)


@pytest.mark.parametrize("setting", ["max_answer_length", "num_best"])
def test_max_answer_length_and_num_best_of_0_are_refused(vocab, setting):
    with pytest.raises(ConfigurationError, match="of at least 1, found .*0"):
        build("squad", vocab, **{setting: 0})


@pytest.mark.parametrize("max_length", [1, 3, 17])
@pytest.mark.parametrize("num_best", [1, 5, 200])
def test_the_best_spans_are_those_of_a_search_through_all(max_length, num_best):
    torch.manual_seed(0)
    lengths = [1, 12, 5, 30]
    mask = torch.arange(max(lengths)) < torch.tensor(lengths).unsqueeze(1)
    logits = 3 * torch.randn(2, *mask.shape, dtype=torch.float64).masked_fill(~mask, -torch.inf)
    spans, probabilities = best_spans(*logits, max_length, num_best)
    assert spans.shape == (4, num_best, 2) and probabilities.shape == (4, num_best)
    for row, length in enumerate(lengths):
        starts, ends = logits[:, row, :length].tolist()
        expected = oracle.spans(starts, ends, max_length)[:num_best]
        missing = num_best - len(expected)
        expected += [(0.0, -1, -1)] * missing
        assert spans[row].tolist() == [[first, last] for _, first, last in expected]
        wanted = torch.tensor([each[0] for each in expected], dtype=torch.float64)
        torch.testing.assert_close(probabilities[row], wanted)


def test_tokens_of_a_long_passage_are_not_paired_with_each_other():
    # All pairs would be 160 GB.
    logits = torch.randn(2, 1, 200_000)
    spans, _ = best_spans(*logits, 17, 20)
    assert bool(((spans[..., 1] - spans[..., 0]) < 17).all())


def test_a_model_that_has_diverged_finds_nothing():
    logits = torch.full((2, 5), torch.nan)
    logits[1] = torch.arange(5.0)
    spans, probabilities = best_spans(logits, logits, max_length=3, num_best=2)
    assert (spans[0] == -1).all() and spans[1, 0].tolist() == [4, 4]
    assert probabilities[0].isnan().all()
