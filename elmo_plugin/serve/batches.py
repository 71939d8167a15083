import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

# After a batch, how long to wait at most for new requests of the clients that it answered, as a
# fraction of the time that the batch took.
_PAUSE = 0.5
_ENDED = "the server cannot answer any more; restart it."

#: The answer to a request, or the error for which there is none.
Outcome = Union[str, Exception]


class Handler(NamedTuple):
    """How requests of a kind are answered, in a thread."""

    #: Reads a request. A `ValueError` or `ConfigurationError` says what is wrong with it.
    read: Callable[[str], Any]
    #: Answers what was read from several requests. An error is one of the model.
    answer: Callable[[List[Any]], List[str]]


class Unavailable(Exception):
    """A request cannot be answered now. The message says why."""


@dataclass(eq=False)
class _Job:
    kind: str
    request: str
    answer: "asyncio.Future[str]"


class Batches:
    """
    Answers requests of several kinds, a batch at a time, in a thread. While a batch is answered,
    new requests wait. The next batch contains the request that has waited longest and the other
    waiting requests of its kind. One thread serves all kinds, because a model uses all cores.

    If the thread is idle, a request is answered at once. After a batch, it waits for new requests
    of the clients that it answered, for at most half the time of the batch. Otherwise, clients that
    ask again at once would stay divided into two batches that wait for each other, although one
    batch of all of them takes little longer than one of half.

    # Parameters

    handlers : `Dict[str, Handler]`
        By kind.
    batch_size, max_queue_size : `int`
        Maximum number of requests in a batch, and of waiting requests. RAM grows with these.
    on_batch : `Callable[[str, int, float], object]`
        Called after each batch with its kind, its size, and the seconds it took.
    """

    def __init__(
        self,
        handlers: Dict[str, Handler],
        batch_size: int,
        max_queue_size: int,
        on_batch: Callable[[str, int, float], object],
    ) -> None:
        self._handlers = handlers
        self._batch_size = batch_size
        self._max_queue_size = max_queue_size
        self._on_batch = on_batch
        self._jobs: List[_Job] = []
        self._task: Optional["asyncio.Task[None]"] = None

    def start(self) -> None:
        """Begins to answer, in the event loop that runs."""
        self._changed = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "elmo-serve")
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Answers nothing more: waiting requests end with `Unavailable`."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})
        # A batch cannot be stopped: whoever ends the process does not wait for it.
        self._thread.shutdown(wait=False)

    @property
    def is_alive(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def num_waiting(self) -> int:
        return len(self._waiting())

    async def answer(self, kind: str, request: str) -> str:
        """
        The answer to a request, which is dropped if this is cancelled before its batch begins.
        Raises `Unavailable`, or the error of the request.
        """
        if not self.is_alive:
            raise Unavailable(_ENDED)
        if self.num_waiting >= self._max_queue_size:
            raise Unavailable("too many requests are waiting. Try again later.")
        job = _Job(kind, request, asyncio.get_running_loop().create_future())
        self._jobs.append(job)
        self._changed.set()
        return await job.answer

    def _waiting(self) -> List[_Job]:
        """The waiting jobs; forgets those whose clients have gone."""
        self._jobs = [job for job in self._jobs if not job.answer.cancelled()]
        return self._jobs

    async def _run(self) -> None:
        batch: List[_Job] = []
        try:
            while True:
                batch = await self._next_batch()
                seconds = await self._answer(batch)
                await self._pause(batch[0].kind, len(batch), _PAUSE * seconds)
        finally:
            # Also after an error of ours: no client may wait for ever.
            for job in (*batch, *self._jobs):
                if not job.answer.done():
                    job.answer.set_exception(Unavailable(_ENDED))
            self._jobs = []

    async def _next_batch(self) -> List[_Job]:
        """Waits for requests."""
        await self._until(lambda: self.num_waiting > 0)
        kind = self._jobs[0].kind
        batch = [job for job in self._jobs if job.kind == kind][: self._batch_size]
        self._jobs = [job for job in self._jobs if job not in batch]
        return batch

    async def _answer(self, batch: List[_Job]) -> float:
        """Answers the jobs of a batch, and returns the seconds that it took."""
        start, kind = time.perf_counter(), batch[0].kind
        requests = [job.request for job in batch]
        loop = asyncio.get_running_loop()
        outcomes = await loop.run_in_executor(self._thread, self._outcomes, kind, requests)
        seconds = time.perf_counter() - start
        # Before the answers, so that a client that has its answer finds it in `/metrics`.
        self._on_batch(kind, len(batch), seconds)
        for job, outcome in zip(batch, outcomes):
            if job.answer.cancelled():
                continue
            if isinstance(outcome, Exception):
                job.answer.set_exception(outcome)
            else:
                job.answer.set_result(outcome)
        return seconds

    def _outcomes(self, kind: str, requests: List[str]) -> List[Outcome]:
        handler = self._handlers[kind]
        read = [_read(handler, request) for request in requests]
        answers = iter(
            _answers(handler, [each for each in read if not isinstance(each, Exception)])
        )
        return [each if isinstance(each, Exception) else next(answers) for each in read]

    async def _pause(self, kind: str, num_answered: int, seconds: float) -> None:
        """Waits for the clients just answered to send again, or for a request of another kind."""
        enough = min(self.num_waiting + num_answered, self._batch_size)

        def has_come() -> bool:
            jobs = self._waiting()
            return len(jobs) >= enough or any(job.kind != kind for job in jobs[:1])

        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._until(has_come), seconds)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()


def _read(handler: Handler, request: str) -> Any:
    try:
        return handler.read(request)
    except Exception as error:
        return error


def _answers(handler: Handler, queries: List[Any]) -> List[Outcome]:
    try:
        return [*handler.answer(queries)] if queries else []
    # `SystemExit` would end the event loop.
    except BaseException as error:
        if len(queries) > 1:
            # At least one fails: answer each by itself, so that the others are answered.
            return [outcome for query in queries for outcome in _answers(handler, [query])]
        # Only the cause may be a `ValueError`, which would blame the request.
        failure = RuntimeError("the model failed")
        failure.__cause__ = error
        return [failure]
