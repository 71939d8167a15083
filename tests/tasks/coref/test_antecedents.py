import pytest
import torch

from elmo_plugin.tasks.coref.antecedents import (
    BUCKETS,
    AntecedentScorer,
    TopSpans,
    best_antecedents,
    clusters_from,
    loss,
)
from elmo_plugin.tasks.coref.mentions import ScoringSettings
from tests.tasks.coref.oracle import bucket, linked, marginal_loss, pair_score, pair_scores


def make(num_top_spans, max_antecedents=250, **settings):
    torch.manual_seed(num_top_spans)
    sizes = ScoringSettings(max_antecedents=max_antecedents, feedforward_dim=6, **settings)
    scorer = AntecedentScorer(3, 2, 4, sizes).double().eval()
    layers = scorer.feedforward
    for layer in (layers.input_layer, layers.hidden_layer, layers.output_layer):
        torch.nn.init.normal_(layer.bias)
    # Nested spans, of which several begin or end at one token.
    starts = torch.randint(0, 1 + num_top_spans // 2, (num_top_spans,)).sort().values
    top_spans = TopSpans(
        torch.randn(5 + num_top_spans, 3, dtype=torch.float64, requires_grad=True),
        starts,
        starts + torch.randint(0, 4, (num_top_spans,)),
        torch.randn(num_top_spans, 2, dtype=torch.float64, requires_grad=True),
        torch.randn(num_top_spans, dtype=torch.float64, requires_grad=True),
        torch.randint(0, 3, (num_top_spans,)),
        torch.tensor(3),
    )
    return scorer, top_spans


def whole(scorer, top_spans):
    """Scores of all pairs, -inf for those that are none: `(num_top_spans, 1 + num_top_spans)`."""
    number = len(top_spans.scores)
    scores = top_spans.scores.new_full((number, 1 + number), float("-inf"))
    for block in scorer.blocks(top_spans):
        scores[block.spans, 0] = block.scores[0]
        columns = slice(1 + block.antecedents.start, 1 + block.antecedents.stop)
        scores[block.spans, columns] = block.scores[1:].t()
    return scores


@pytest.mark.parametrize("num_top_spans, max_antecedents", [(1, 250), (2, 1), (23, 250), (23, 3)])
def test_scores_are_those_of_the_unfactored_formula(num_top_spans, max_antecedents):
    scorer, top_spans = make(num_top_spans, max_antecedents)
    expected = torch.full((num_top_spans, 1 + num_top_spans), float("-inf"), dtype=torch.float64)
    expected[:, 0] = 0.0
    for span, of_span in enumerate(pair_scores(scorer, top_spans)):
        for antecedent, score in of_span.items():
            expected[span, 1 + antecedent] = score.detach()
    torch.testing.assert_close(whole(scorer, top_spans), expected)


def test_distances_fall_into_the_buckets_of_the_paper():
    named = [(1, 0), (4, 3), (5, 4), (7, 4), (8, 5), (15, 5), (16, 6), (31, 6), (32, 7), (64, 8)]
    assert [bucket(distance) for distance, _ in named] == [number for _, number in named]
    assert BUCKETS == [bucket(distance) for distance in range(1, 65)]
    # And all that are farther away into the last.
    scorer, top_spans = make(70)
    found = whole(scorer, top_spans)[69, 1:4].tolist()
    wanted = [pair_score(scorer, top_spans, 69, antecedent).item() for antecedent in range(3)]
    assert found == pytest.approx(wanted)


# The third span is no mention, the last one the only one of its cluster that was top_spans.
CLUSTERS = [0, 1, None, 0, 1, 0, None, 2]


@pytest.mark.parametrize("max_antecedents", [250, 2])
def test_the_loss_is_that_of_an_explicit_enumeration_and_so_are_gradients(max_antecedents):
    scorer, top_spans = make(len(CLUSTERS), max_antecedents)
    clusters = torch.tensor([-1 if cluster is None else cluster for cluster in CLUSTERS])
    found = sum(loss(block, clusters) for block in scorer.blocks(top_spans))
    wanted = marginal_loss(pair_scores(scorer, top_spans), CLUSTERS)
    torch.testing.assert_close(found, wanted)
    learned = [
        top_spans.encoded,
        top_spans.heads_and_widths,
        top_spans.scores,
        *scorer.parameters(),
    ]
    torch.testing.assert_close(
        torch.autograd.grad(found, learned), torch.autograd.grad(wanted, learned)
    )


def test_scores_far_apart_give_a_loss_and_gradients():
    scorer, top_spans = make(6)
    large = top_spans._replace(scores=top_spans.scores.detach().mul(1e4).requires_grad_())
    total = sum(loss(block, torch.zeros(6, dtype=torch.long)) for block in scorer.blocks(large))
    total.backward()
    assert total.isfinite() and large.scores.grad.isfinite().all()


def test_the_best_antecedent_is_chosen_if_it_scores_above_none():
    scorer, top_spans = make(23, 5)
    top_spans = top_spans._replace(scores=top_spans.scores - 1.5)
    found = torch.cat([best_antecedents(block) for block in scorer.blocks(top_spans)]).tolist()
    scores = whole(scorer, top_spans).tolist()
    for span, antecedent in enumerate(found):
        best = max(scores[span])
        assert best == (0.0 if antecedent == span else scores[span][1 + antecedent])
    assert 0 < sum(antecedent != span for span, antecedent in enumerate(found)) < 22


@pytest.mark.parametrize(
    "antecedents", [[None], [None, 0, 1, 2, 3, 4, 5], [None, None, 0, None, 1, 2, 3, None, 6]]
)
def test_clusters_are_the_linked_spans(antecedents):
    places = [span if other is None else other for span, other in enumerate(antecedents)]
    assert clusters_from(torch.tensor(places)) == linked(antecedents)


def test_dropout_keeps_the_mean_and_drops_at_its_rate():
    scorer, _ = make(1, dropout=0.2)
    dropped = scorer.feedforward.dropout.train()(torch.ones(401, 503))
    assert (dropped == 0).float().mean().item() == pytest.approx(0.2, abs=0.005)
    assert dropped.mean().item() == pytest.approx(1.0, abs=0.005)
    assert len(dropped.unique()) == 2
    assert scorer.feedforward.dropout.eval()(torch.ones(3)).tolist() == [1.0, 1.0, 1.0]
