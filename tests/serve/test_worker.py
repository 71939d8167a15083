import threading
import time

import pytest

from elmo_plugin.serve.worker import QueueFull, Worker, WorkerEnded
from tests.waiting import wait_until


class Echo:
    """Answers with the request and the size of its batch, when it may."""

    def __init__(self):
        self.batches = []
        self.may_answer = threading.Semaphore(0)

    def __call__(self, requests):
        self.batches.append(list(requests))
        assert self.may_answer.acquire(timeout=10)
        return [
            ValueError(f"bad {request}") if request.startswith("bad") else f"{request}!"
            for request in requests
        ]


@pytest.fixture
def start():
    workers = []

    def make(handlers, batch_size=3, max_queue_size=10, on_batch=lambda *_: None):
        worker = Worker(handlers, batch_size, max_queue_size, on_batch)
        worker.start()
        workers.append(worker)
        return worker

    yield make
    for worker in workers:
        worker.stop()


def test_a_single_request_does_not_wait_for_others(start):
    echo = Echo()
    echo.may_answer.release()
    assert start({"a": echo}).submit("a", "1").result(timeout=10) == "1!"


def test_what_waits_becomes_batches_of_one_kind_the_oldest_first(start):
    first, second = Echo(), Echo()
    worker = start({"a": first, "b": second})
    futures = [worker.submit("a", "0")]
    wait_until(lambda: first.batches)
    for kind, request in (("b", "1"), ("a", "2"), ("b", "3"), ("b", "4"), ("b", "5"), ("a", "6")):
        futures.append(worker.submit(kind, request))
    for _ in range(3):
        first.may_answer.release()
        second.may_answer.release()
    assert [future.result(timeout=10) for future in futures] == [f"{n}!" for n in range(7)]
    assert first.batches == [["0"], ["2", "6"]]
    # At most three in a batch.
    assert second.batches == [["1", "3", "4"], ["5"]]


def test_the_error_of_a_request_is_its_own(start):
    echo = Echo()
    worker = start({"a": echo})
    futures = [worker.submit("a", "0")]
    wait_until(lambda: echo.batches)
    futures += [worker.submit("a", request) for request in ("1", "bad", "2")]
    echo.may_answer.release(2)
    assert [futures[n].result(timeout=10) for n in (0, 1, 3)] == ["0!", "1!", "2!"]
    with pytest.raises(ValueError, match="bad bad"):
        futures[2].result(timeout=10)


def test_a_request_that_is_cancelled_while_it_waits_is_not_answered(start):
    echo = Echo()
    worker = start({"a": echo})
    running = worker.submit("a", "0")
    wait_until(lambda: echo.batches)
    gone, stays = worker.submit("a", "1"), worker.submit("a", "2")
    assert gone.cancel() and not running.cancel()
    echo.may_answer.release(2)
    assert stays.result(timeout=10) == "2!"
    assert echo.batches == [["0"], ["2"]]


def test_a_full_queue_refuses_and_forgets_those_who_went_away(start):
    echo = Echo()
    worker = start({"a": echo}, max_queue_size=2)
    worker.submit("a", "0")
    wait_until(lambda: echo.batches)
    waiting = [worker.submit("a", "1"), worker.submit("a", "2")]
    with pytest.raises(QueueFull):
        worker.submit("a", "3")
    waiting[0].cancel()
    assert worker.submit("a", "4") and worker.num_waiting == 2
    echo.may_answer.release(2)


def test_a_batch_that_raises_fails_and_the_next_is_answered(start):
    outcomes = [RuntimeError("out of memory"), ["yes"]]

    def answer(requests):
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    worker = start({"a": answer})
    with pytest.raises(RuntimeError, match="out of memory"):
        worker.submit("a", "1").result(timeout=10)
    assert worker.submit("a", "2").result(timeout=10) == "yes"


def test_a_worker_answers_nothing_after_its_stop(start):
    worker = start({"a": list})
    worker.stop()
    with pytest.raises(WorkerEnded):
        worker.submit("a", "1")


def test_requests_of_another_kind_do_not_wait_for_those_just_answered(start, monkeypatch):
    monkeypatch.setattr("elmo_plugin.serve.worker._PAUSE", 1e6)
    first = Echo()
    worker = start({"a": first, "b": list})
    worker.submit("a", "0")
    wait_until(lambda: first.batches)
    other = worker.submit("b", "1")
    first.may_answer.release()
    assert other.result(timeout=10) == "1"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_nobody_waits_for_a_thread_that_died(start):
    echo = Echo()

    def die(requests):
        assert echo.may_answer.acquire(timeout=10)
        raise SystemExit

    worker = start({"a": die})
    running = worker.submit("a", "1")
    wait_until(lambda: worker.num_waiting == 0)
    waiting = worker.submit("a", "2")
    echo.may_answer.release()
    for future in (running, waiting):
        with pytest.raises(WorkerEnded):
            future.result(timeout=10)
    wait_until(lambda: not worker.is_alive)
    with pytest.raises(WorkerEnded):
        worker.submit("a", "3")


def test_a_client_that_leaves_while_the_thread_ends_does_not_keep_others_waiting(start):
    echo = Echo()
    worker = start({"a": echo})
    worker.submit("a", "0")
    wait_until(lambda: echo.batches)
    leaves, stays = worker.submit("a", "1"), worker.submit("a", "2")

    def leave_first(error):
        leaves.cancel()
        type(leaves).set_exception(leaves, error)

    leaves.set_exception = leave_first
    worker.stop()
    echo.may_answer.release()
    with pytest.raises(WorkerEnded):
        stays.result(timeout=10)
    assert leaves.cancelled() and worker.num_waiting == 0


def test_those_just_answered_may_ask_again_before_the_next_batch(start, monkeypatch):
    monkeypatch.setattr("elmo_plugin.serve.worker._PAUSE", 1e6)
    echo = Echo()
    worker = start({"a": echo})
    first = worker.submit("a", "0")
    wait_until(lambda: echo.batches)
    second = worker.submit("a", "1")
    echo.may_answer.release()
    assert first.result(timeout=10) == "0!"
    # Time in which, without a pause, a batch of the second alone would begin.
    time.sleep(0.2)
    assert echo.batches == [["0"]]
    third = worker.submit("a", "2")
    echo.may_answer.release()
    assert [second.result(timeout=10), third.result(timeout=10)] == ["1!", "2!"]
    assert echo.batches == [["0"], ["1", "2"]]
