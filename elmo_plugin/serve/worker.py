import logging
import threading
import time
from collections import deque
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Callable, Deque, Dict, List, Optional, Sequence, Union

logger = logging.getLogger(__name__)

# After a batch, how long to wait at most for new requests of the clients that it answered, as a
# fraction of the time that the batch took.
_PAUSE = 0.5

#: The answer to a request, or the error for which there is none.
Outcome = Union[str, Exception]
#: Answers requests, with an outcome for each: an error of one must not affect the others.
Handler = Callable[[Sequence[str]], List[Outcome]]


class QueueFull(Exception):
    """The maximum number of requests is waiting."""


class WorkerEnded(Exception):
    """The thread that answers has ended."""


@dataclass(frozen=True)
class _Job:
    kind: str
    request: str
    future: "Future[str]" = field(default_factory=Future)


def model_failed(error: Exception) -> Exception:
    """For an error of a model: only its cause may be a `ValueError`, which blames the request."""
    failure = RuntimeError("the model failed")
    failure.__cause__ = error
    return failure


class Worker:
    """
    A thread that answers requests of several kinds. While a batch is answered, new requests wait.
    The next batch contains the request that has waited longest and the other waiting requests of
    its kind, at most `batch_size`. One thread serves all kinds, because a model uses all cores.

    If the thread is idle, a request is answered at once. After a batch, the thread waits for new
    requests of the clients that it answered, for at most half the time of the batch. Otherwise,
    clients that ask again at once would stay divided into two batches that wait for each other,
    although one batch of all of them takes little longer than one of half.

    # Parameters

    handlers : `Dict[str, Handler]`
        For each kind, the function that answers its requests.
    batch_size : `int`
        Maximum number of requests in a batch.
    max_queue_size : `int`
        Maximum number of waiting requests. RAM grows with these.
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
        self._jobs: Deque[_Job] = deque()
        self._changed = threading.Condition()
        self._thread: Optional[threading.Thread] = None
        self._stopping = False

    def start(self) -> None:
        # As a daemon, so that a long batch does not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name="elmo-serve", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Answers nothing more: waiting requests end with `WorkerEnded`."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    @property
    def num_waiting(self) -> int:
        return len(self._jobs)

    def submit(self, kind: str, request: str) -> "Future[str]":
        """
        # Returns

        `Future[str]`
            The answer. If it is cancelled before its batch begins, the request is not answered.

        # Raises

        `QueueFull`, `WorkerEnded`
        """
        with self._changed:
            # Checked with the lock held, so that no job is added after `_run` clears the queue.
            if self._stopping or not self.is_alive:
                raise WorkerEnded
            if len(self._jobs) >= self._max_queue_size:
                self._jobs = deque(job for job in self._jobs if not job.future.cancelled())
            if len(self._jobs) >= self._max_queue_size:
                raise QueueFull
            job = _Job(kind, request)
            self._jobs.append(job)
            self._changed.notify()
            return job.future

    def _run(self) -> None:
        batch: List[_Job] = []
        try:
            while batch := self._next_batch():
                seconds = self._answer(batch)
                self._pause(batch[0].kind, len(batch), _PAUSE * seconds)
        finally:
            # Also after an error: no client may wait for a thread that has ended.
            with self._changed:
                self._stopping = True
                for job in (*batch, *self._jobs):
                    # Some are answered already, and a client may cancel one at any moment.
                    with suppress(InvalidStateError):
                        job.future.set_exception(WorkerEnded())
                self._jobs.clear()

    def _next_batch(self) -> List[_Job]:
        """Waits for requests. Empty if the worker is to stop."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._jobs or self._stopping)
                if self._stopping:
                    return []
                kind = self._jobs[0].kind
                batch: List[_Job] = []
                others: Deque[_Job] = deque()
                for job in self._jobs:
                    if job.kind != kind or len(batch) == self._batch_size:
                        others.append(job)
                    elif job.future.set_running_or_notify_cancel():
                        batch.append(job)
                self._jobs = others
                if batch:
                    return batch

    def _pause(self, kind: str, num_answered: int, seconds: float) -> None:
        """
        Waits until as many requests have come as were answered, a batch is full, or the next batch
        is of another kind.
        """
        with self._changed:
            enough = min(len(self._jobs) + num_answered, self._batch_size)
            self._changed.wait_for(
                lambda: (
                    self._stopping
                    or len(self._jobs) >= enough
                    or (self._jobs and self._jobs[0].kind != kind)
                ),
                seconds,
            )

    def _answer(self, batch: List[_Job]) -> float:
        """Answers the jobs of a batch, and returns the seconds that it took."""
        start = time.perf_counter()
        kind = batch[0].kind
        try:
            outcomes = self._handlers[kind]([job.request for job in batch])
        except Exception as error:
            logger.exception("%s: a batch of %d requests failed", kind, len(batch))
            outcomes = [error] * len(batch)
        seconds = time.perf_counter() - start
        # Before the answers, so that a client that has its answer finds it in `/metrics`.
        self._on_batch(kind, len(batch), seconds)
        for job, outcome in zip(batch, outcomes):
            if isinstance(outcome, Exception):
                job.future.set_exception(outcome)
            else:
                job.future.set_result(outcome)
        return seconds
