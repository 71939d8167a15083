import os
import resource
import signal
import socket
import sys
import time
from typing import Any, Callable, Dict, List, NoReturn, Tuple

from elmo_plugin.util.errors import INTERRUPTED, ConfigurationError

# Connections beyond this number are closed, those first that have waited longest for a request.
_MAX_CONNECTIONS = 4096
# Seconds that a connection waits for a complete request.
_SECONDS_TO_WAIT = 60
_SECONDS_TO_STOP = 6
_MAX_HEADER_BYTES = 64 * 1024


def listen(host: str, port: int) -> socket.socket:
    """A socket of this address; `ConfigurationError` if it cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot listen on {host}, port {port} ({error.strerror or error}). Choose another "
            "--port, or an address of this machine as --host."
        ) from error


def serve(app: Any, host: str, port: int, on_start: Callable[[str], object]) -> NoReturn:
    """
    Serves an application until SIGINT or SIGTERM. Requests that are not answered 6 seconds later
    are cancelled, and the process ends: with 130 after SIGINT, else with 0.

    # Parameters

    app : `Any`
        See `make_app`.
    host : `str`
        The address to listen on.
    port : `int`
        0 for any free one.
    on_start : `Callable[[str], object]`
        Called with the URL when it listens.

    # Raises

    `ConfigurationError`
        If the address cannot be used.
    """
    import uvicorn

    with listen(host, port) as listening:
        shown = f"[{host}]" if listening.family == socket.AF_INET6 else host
        on_start(f"http://{shown}:{listening.getsockname()[1]}/")
        config = uvicorn.Config(
            app,
            http="h11",
            h11_max_incomplete_event_size=_MAX_HEADER_BYTES,
            ws="none",
            log_level="error",
            access_log=False,
            timeout_notify=0,
            timeout_graceful_shutdown=_SECONDS_TO_STOP,
        )
        server = uvicorn.Server(config)
        connections = _InOrder()
        server.server_state.connections = connections  # type: ignore[assignment]
        # Called every second.
        config.callback_notify = _closer(connections)
        # uvicorn's own raises the signal again in the end, and a second signal leaves at once.
        signals: List[int] = []

        def end(number: int, _: Any) -> None:
            signals.append(number)
            server.should_exit = True

        server.handle_exit = end  # type: ignore
        server.run(sockets=[listening])
    print("stopped.", file=sys.stderr, flush=True)
    # A usual end waits for the models, and aborts the process in the middle of a batch.
    os._exit(INTERRUPTED if signals[0] == signal.SIGINT else 0)


class _InOrder(Dict[Any, None]):
    """A set in the order in which its elements were added."""

    add = dict.setdefault

    def discard(self, element: Any) -> None:
        self.pop(element, None)


def _closer(connections: _InOrder) -> Callable[[], Any]:
    """A function that closes connections without a complete request: old ones, and surplus ones."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The other half is for files, and for connections made until the function is called again.
    files = 2 * _MAX_CONNECTIONS
    files = files if hard == resource.RLIM_INFINITY else min(files, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, files), hard))
    # By connection its last request, and since when it waits for another.
    since: Dict[Any, Tuple[Any, float]] = {}

    async def close() -> None:
        now = time.monotonic()
        before = since.copy()
        since.clear()
        for each in connections:
            cycle = each.cycle
            if not cycle or cycle.response_complete or cycle.more_body or each.flow.write_paused:
                same = each in before and before[each][0] is cycle
                since[each] = before[each] if same else (cycle, now)
        surplus = len(connections) - files // 2
        for place, each in enumerate(sorted(since, key=lambda key: since[key][1])):
            if place < surplus or now - since[each][1] > _SECONDS_TO_WAIT:
                each.transport.abort()

    return close
