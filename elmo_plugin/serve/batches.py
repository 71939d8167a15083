import asyncio
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

# Longest pause after a batch, as a fraction of the time that the batch took. See `Batches`.
_PAUSE = 0.5
_ENDED = "the server cannot answer any more; restart it."

#: The answer to a request, or the error that prevented it.
Outcome = Union[str, Exception]


class Handler(NamedTuple):
    """Functions that answer one kind of request. They run in a thread."""

    #: Parses a request. A `ValueError` or `ConfigurationError` says what is wrong with it.
    read: Callable[[str], Any]
    #: Answers several parsed requests. An error here is the model's, not the request's.
    answer: Callable[[List[Any]], List[str]]


class Unavailable(Exception):
    """A request cannot be answered now. The message says why."""

    status = 503


@dataclass(eq=False)
class _Job:
    kind: str
    request: str
    answer: "asyncio.Future[str]"


class Batches:
    """
    Answers requests in batches, in one thread, because a model uses all cores. A batch contains the
    request that has waited longest and the other waiting requests of its kind.

    An idle thread answers a request at once. After a batch, it waits for the same clients to send
    again, at most half as long as the batch took. Without this pause, clients that send again at
    once would stay split into two batches that take turns. One batch of all of them takes little
    longer than one of half.

    RAM grows with `batch_size` and with `max_queue_size`, the maximum number of waiting requests.
    """

    def __init__(
        self,
        handlers: Dict[str, Handler],
        batch_size: int,
        max_queue_size: int,
    ) -> None:
        self._handlers = handlers
        self._batch_size = batch_size
        self._max_queue_size = max_queue_size
        self._jobs: List[_Job] = []
        self._task: Optional["asyncio.Task[None]"] = None

    def start(self) -> None:
        """Starts to answer, in the running event loop."""
        self._changed = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, "elmo-serve")
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Stops answering. Waiting requests end with `Unavailable`."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait({self._task})
        # A running batch cannot be stopped, so the process ends without waiting for it.
        self._thread.shutdown(wait=False)

    @property
    def is_alive(self) -> bool:
        return self._task is not None and not self._task.done()

    @property
    def num_waiting(self) -> int:
        return len(self._waiting())

    async def answer(self, kind: str, request: str) -> str:
        """
        Returns the answer to a request. Raises `Unavailable`, or the error of the request.
        Cancelling this before the batch begins drops the request.
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
        """Forgets the jobs of clients that have gone, and returns the others."""
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
            # After a bug of ours, too: no client may wait forever.
            for job in (*batch, *self._jobs):
                if not job.answer.done():
                    job.answer.set_exception(Unavailable(_ENDED))
            self._jobs = []

    async def _next_batch(self) -> List[_Job]:
        await self._until(lambda: self.num_waiting > 0)
        kind = self._jobs[0].kind
        batch = [job for job in self._jobs if job.kind == kind][: self._batch_size]
        self._jobs = [job for job in self._jobs if job not in batch]
        return batch

    async def _answer(self, batch: List[_Job]) -> float:
        """Answers a batch, and returns the seconds that it took."""
        start, kind = time.perf_counter(), batch[0].kind
        requests = [job.request for job in batch]
        loop = asyncio.get_running_loop()
        outcomes = await loop.run_in_executor(self._thread, self._outcomes, kind, requests)
        seconds = time.perf_counter() - start
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
            # At least one query fails. Answered alone, the others succeed.
            return [outcome for query in queries for outcome in _answers(handler, [query])]
        # Wrapped, because a `ValueError` of the model would blame the request.
        failure = RuntimeError("the model failed")
        failure.__cause__ = error
        return [failure]
