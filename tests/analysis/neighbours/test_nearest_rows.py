import numpy
import pytest

from elmo_plugin.analysis.neighbours.nearest_rows import NearestRows, search


def unit(vectors):
    return vectors / numpy.linalg.norm(vectors, axis=-1, keepdims=True)


def make(num_rows=300, dim=24, seed=0):
    return unit(numpy.random.default_rng(seed).standard_normal((num_rows, dim))).astype("f2")


def make_queries(number=4, dim=24):
    return numpy.random.default_rng(7).standard_normal((number, dim))


def brute_force(vectors, query, number, allowed=None):
    """Rows and cosines, in extended precision, by a sort of all."""
    exact, query = vectors.astype(numpy.longdouble), query.astype(numpy.longdouble)
    cosines = {}
    for row in range(len(exact)) if allowed is None else allowed:
        norms = numpy.sqrt(exact[row] @ exact[row]) * numpy.sqrt(query @ query)
        cosines[row] = float(exact[row] @ query / norms)
    # Rows that are equal differ by rounding here.
    order = sorted(cosines, key=lambda row: (-round(cosines[row], 14), row))[:number]
    return order, [cosines[row] for row in order]


def found(vectors, queries, number=5, excluded=(), **settings):
    nearest = [NearestRows(vectors, query, number, excluded) for query in queries]
    search(vectors, nearest, **settings)
    return [(each.rows.tolist(), each.cosines.tolist()) for each in nearest]


def check(vectors, queries, number=5, excluded=(), allowed=None, **settings):
    for query, (rows, cosines) in zip(
        queries, found(vectors, queries, number, excluded, **settings)
    ):
        expected_rows, expected_cosines = brute_force(vectors, query, number, allowed)
        assert rows == expected_rows
        numpy.testing.assert_allclose(cosines, expected_cosines, atol=1e-14)


@pytest.mark.parametrize("number", [1, 5, 299, 300, 1000])
def test_the_nearest_rows_are_those_of_a_sort_of_all_cosines(number):
    check(make(), make_queries(), number)


@pytest.mark.parametrize("dim", [1, 3, 1024])
def test_rows_may_be_short_or_long(dim):
    check(make(dim=dim), make_queries(dim=dim))


def test_rows_that_differ_by_less_than_the_products_can_tell_are_in_their_order():
    generator = numpy.random.default_rng(3)
    vectors = numpy.tile(make(1), (500, 1))
    # By one unit in the last place of half precision, in one dimension each.
    places = generator.integers(0, 24, 500)
    vectors.view("i2")[numpy.arange(500), places] += generator.integers(-1, 2, 500).astype("i2")
    check(vectors, [vectors[0].astype("f8"), *make_queries()], 20, rows_per_block=32)


def test_equal_rows_are_in_their_own_order():
    vectors = numpy.tile(make(10), (30, 1))
    check(vectors, make_queries(), 40, rows_per_block=7)
    ((rows, cosines),) = found(vectors, [vectors[3]], 4, rows_per_block=16)
    assert rows == [3, 13, 23, 33] and cosines == pytest.approx([1.0] * 4, abs=1e-15)


@pytest.mark.parametrize("rows_per_block", [1, 2, 7, 64, 300, 512])
def test_results_do_not_depend_on_the_blocks(rows_per_block):
    expected = found(make(), make_queries())
    assert found(make(), make_queries(), rows_per_block=rows_per_block) == expected


def test_results_do_not_depend_on_other_queries():
    queries = make_queries(50)
    together = found(make(), queries)
    assert [found(make(), [query])[0] for query in queries] == together
    assert found(make(), queries[::-1]) == together[::-1]


@pytest.mark.parametrize("rows_per_block", [1, 50, 1000])
def test_excluded_rows_do_not_count(rows_per_block):
    excluded = [(0, 20), (45, 55), (299, 300)]
    allowed = [row for row in range(300) if not any(a <= row < b for a, b in excluded)]
    check(make(), make_queries(), 5, excluded, allowed, rows_per_block=rows_per_block)
    assert found(make(), make_queries(), 5, [(0, 300)]) == [([], [])] * 4


def test_chosen_rows_are_compared_alone():
    vectors, chosen = make(), numpy.arange(5, 300, 3)
    for query in make_queries():
        nearest = NearestRows(vectors, query, 5, [(20, 40)])
        nearest.add_rows(chosen)
        allowed = [row for row in chosen.tolist() if not 20 <= row < 40]
        rows, cosines = brute_force(vectors, query, 5, allowed)
        assert nearest.rows.tolist() == rows
        numpy.testing.assert_allclose(nearest.cosines, cosines, atol=1e-14)


def test_a_vector_of_zeros_is_as_near_as_a_right_angle():
    vectors = numpy.concatenate([make(3), numpy.zeros((1, 24), "f2")])
    ((rows, cosines),) = found(vectors, [-vectors[0].astype("f8")], 4)
    assert cosines[rows.index(3)] == 0.0
    assert found(vectors, [numpy.zeros(24)], 4) == [([0, 1, 2, 3], [0.0] * 4)]


def test_the_length_of_a_query_does_not_count():
    queries = make_queries()
    once, more = found(make(), queries), found(make(), queries * 1e6)
    assert [rows for rows, _ in once] == [rows for rows, _ in more]


def test_progress_counts_every_row():
    done = []
    found(make(), make_queries(), rows_per_block=64, on_progress=done.append)
    assert done == [64, 64, 64, 64, 44]
