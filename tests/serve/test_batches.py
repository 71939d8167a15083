import asyncio
import threading
from contextlib import asynccontextmanager
from functools import wraps

import pytest

from elmo_plugin.serve.batches import Batches, Handler, Unavailable


class Echo:
    """Answers a batch, when it may; fails at `bad` and `exit`."""

    def __init__(self, num_allowed=0):
        self.batches = []
        self.may_answer = threading.Semaphore(num_allowed)

    def __call__(self, requests):
        self.batches.append(list(requests))
        assert self.may_answer.acquire(timeout=10)
        if "bad" in requests:
            raise ValueError("of the model")
        if "exit" in requests:
            raise SystemExit
        return [f"{request}!" for request in requests]


def read(request):
    if request == "unreadable":
        raise ValueError("of the request")
    return request


@asynccontextmanager
async def started(handlers, batch_size=3, max_queue_size=10):
    handlers = {kind: Handler(read, answer) for kind, answer in handlers.items()}
    batches = Batches(handlers, batch_size, max_queue_size)
    batches.start()
    yield batches
    await batches.stop()


def played(test):
    """A test that is a coroutine."""

    @wraps(test)
    def run(*args, **fixtures):
        asyncio.run(asyncio.wait_for(test(*args, **fixtures), 20))

    return run


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


async def ask(batches, *requests, kind="a"):
    """Tasks that wait for the answers."""
    tasks = [asyncio.create_task(batches.answer(kind, request)) for request in requests]
    await asyncio.sleep(0)
    return tasks


async def busy(echo, batches):
    """A request that is being answered."""
    (first,) = await ask(batches, "0")
    await until(lambda: echo.batches)
    return first


@played
async def test_a_single_request_does_not_wait_for_others():
    async with started({"a": Echo(1)}) as batches:
        assert await batches.answer("a", "1") == "1!"


@played
async def test_what_waits_becomes_batches_of_one_kind_the_oldest_first():
    first, second = Echo(10), Echo(10)
    first.may_answer = threading.Semaphore(0)
    async with started({"a": first, "b": second}) as batches:
        tasks = [await busy(first, batches)]
        for kind, request in zip("babbba", "123456"):
            tasks += await ask(batches, request, kind=kind)
        first.may_answer.release(10)
        assert await asyncio.gather(*tasks) == [f"{number}!" for number in range(7)]
    assert first.batches == [["0"], ["2", "6"]]
    # At most three in a batch.
    assert second.batches == [["1", "3", "4"], ["5"]]


@pytest.mark.parametrize("failing", ["bad", "exit"])
@played
async def test_the_error_of_a_request_is_its_own(failing):
    echo = Echo()
    async with started({"a": echo}, batch_size=4) as batches:
        await busy(echo, batches)
        tasks = await ask(batches, "1", failing, "unreadable", "2")
        echo.may_answer.release(10)
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert (found[0], found[3]) == ("1!", "2!")
        # A `ValueError` blames the request.
        assert type(found[1]) is RuntimeError and found[1].__cause__ is not None
        assert type(found[2]) is ValueError
        assert await batches.answer("a", "3") == "3!"


@played
async def test_a_request_that_is_cancelled_while_it_waits_is_not_answered():
    echo = Echo()
    async with started({"a": echo}, max_queue_size=2) as batches:
        running = await busy(echo, batches)
        gone, stays = await ask(batches, "1", "2")
        with pytest.raises(Unavailable, match="too many"):
            await batches.answer("a", "3")
        gone.cancel()
        await until(lambda: batches.num_waiting == 1)
        # It also leaves its place in the queue.
        (later,) = await ask(batches, "4")
        running.cancel()
        echo.may_answer.release(2)
        assert await asyncio.gather(stays, later) == ["2!", "4!"]
    assert echo.batches == [["0"], ["2", "4"]]


@pytest.mark.parametrize("is_stopped", [True, False])
@played
async def test_nobody_waits_for_what_has_ended(is_stopped, monkeypatch):
    outcomes = Batches._outcomes

    def fail(*arguments):
        outcomes(*arguments)
        raise ValueError("of ours")

    monkeypatch.setattr(Batches, "_outcomes", fail)
    echo = Echo()
    async with started({"a": echo}) as batches:
        running = await busy(echo, batches)
        (waiting,) = await ask(batches, "1")
        if is_stopped:
            await batches.stop()
        echo.may_answer.release(2)
        found = await asyncio.gather(running, waiting, return_exceptions=True)
        assert {type(error) for error in found} == {Unavailable}
        await until(lambda: not batches.is_alive)
        with pytest.raises(Unavailable, match="restart"):
            await batches.answer("a", "3")


@played
async def test_requests_of_another_kind_do_not_wait_for_those_just_answered(monkeypatch):
    monkeypatch.setattr("elmo_plugin.serve.batches._PAUSE", 1e6)
    first = Echo()
    async with started({"a": first, "b": Echo(1)}) as batches:
        await busy(first, batches)
        (other,) = await ask(batches, "1", kind="b")
        first.may_answer.release()
        assert await other == "1!"


@played
async def test_those_just_answered_may_ask_again_before_the_next_batch(monkeypatch):
    monkeypatch.setattr("elmo_plugin.serve.batches._PAUSE", 1e6)
    echo = Echo()
    async with started({"a": echo}) as batches:
        first = await busy(echo, batches)
        tasks = await ask(batches, "1")
        echo.may_answer.release()
        assert await first == "0!"
        # Time in which, without a pause, a batch of the second alone would begin.
        await asyncio.sleep(0.2)
        assert echo.batches == [["0"]]
        tasks += await ask(batches, "2")
        echo.may_answer.release()
        assert await asyncio.gather(*tasks) == ["1!", "2!"]
    assert echo.batches == [["0"], ["1", "2"]]
