import json
from asyncio import TimerHandle, Transport
from typing import Dict, Optional

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

#: Seconds in which a client must send a request, and after which it is not waited for any more.
SECONDS_TO_SEND = 30
# Bytes of a request beside its body: URL, headers, and what stands around the parts of a body.
_MAX_BYTES = 64 * 1024
# Bytes after which the limit is checked.
_PART = 16 * 1024


class Connection(HttpToolsProtocol):
    """
    A connection of uvicorn with limits: the time in which the next request must be complete, the
    size of its URL and headers, and the number of connections. Refusals are JSON.
    """

    #: One more closes the connection that has waited longest for a request.
    max_connections = 4096
    # Those without a complete request, the oldest first, and the timers that end them.
    _waiting: Dict["Connection", TimerHandle] = {}
    # Bytes of the incomplete request beside its body.
    _num_bytes = 0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()
        if len(self.connections) > self.max_connections:
            oldest = next(iter(self._waiting))
            oldest._end_wait()
            oldest.transport.abort()

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self._end_wait()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        for start in range(0, len(data), _PART):
            part = data[start : start + _PART]
            self._num_bytes += len(part)
            super().data_received(part)
            if self._num_bytes > _MAX_BYTES:
                self._refuse(431, f"expected URL and headers of at most {_MAX_BYTES:,} bytes.")
            if self.transport.is_closing():
                break

    def on_message_begin(self) -> None:
        if self._answer_is_due:
            raise ValueError("a request before the previous one was answered")
        super().on_message_begin()
        self._wait()

    def on_body(self, body: bytes) -> None:
        self._num_bytes -= len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._num_bytes = 0
        super().on_message_complete()
        # Otherwise it was refused before it was complete.
        if self._answer_is_due:
            self._end_wait()
        else:
            self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._wait()

    def pause_writing(self) -> None:
        super().pause_writing()
        # A client must also read its answer in time.
        self._wait()

    def send_400_response(self, msg: str) -> None:
        if self._answer_is_due:
            # What follows the request is not read: the answer is the last of the connection.
            self.cycle.keep_alive = False
        else:
            self._refuse(400, "expected a request in HTTP/1.1, found something else.")

    @property
    def _answer_is_due(self) -> bool:
        cycle = self.cycle
        return cycle is not None and not cycle.more_body and not cycle.response_complete

    def _wait(self) -> None:
        self._end_wait()
        self._waiting[self] = self.loop.call_later(SECONDS_TO_SEND, self._end)

    def _end_wait(self) -> None:
        if timer := self._waiting.pop(self, None):
            timer.cancel()

    def _end(self) -> None:
        if self._num_bytes:
            self._refuse(408, f"the request was not sent within {SECONDS_TO_SEND} seconds.")
        else:
            self.transport.abort()

    def _refuse(self, status: int, detail: str) -> None:
        if not self.transport.is_closing():
            content = json.dumps({"detail": detail}).encode()
            head = b"content-type: application/json\r\ncontent-length: %d\r\n" % len(content)
            head = STATUS_LINE[status] + head + b"connection: close\r\n\r\n"
            self.transport.write(head + content)
            self.transport.close()
