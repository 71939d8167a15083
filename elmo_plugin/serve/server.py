import os
import re
import signal
import socket
import sys
from typing import Any, Callable, Iterable, List, NoReturn, Optional, Tuple

from elmo_plugin.util.errors import INTERRUPTED, ConfigurationError

_SECONDS_TO_STOP = 6
_MAX_HEADER_BYTES = 64 * 1024
_LOCAL = ["localhost", "127.0.0.1", "[::1]"]


class AllowedHosts:
    """
    ASGI middleware that refuses requests from pages of other sites in a user's browser.

    The name of such a site may resolve to this server (DNS rebinding), but the browser sends it as
    `Host` or `Origin`. `Host` must be allowed. `Origin`, if sent, must be allowed or the same as
    `Host`. Allowed names match with any port.

    `hosts` are allowed in addition to localhost; IPv6 is in brackets. `*` allows everything.
    `0.0.0.0` and `[::]` allow every IP address as `Host`, because no name led to it.
    """

    def __init__(self, app: Any, hosts: Iterable[str]) -> None:
        self._app = app
        self._allowed = list(dict.fromkeys((*_LOCAL, *map(str.lower, hosts))))
        names = "|".join(map(re.escape, self._allowed))
        addresses = r"|[\d.]+|\[[\da-f:.]+\]" if {"0.0.0.0", "[::]"} & {*self._allowed} else ""
        self._host, self._origin = rf"({names}{addresses})(:\d+)?", rf"https?://({names})(:\d+)?"

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from fastapi.responses import JSONResponse

        problem = None
        if scope["type"] == "http" and "*" not in self._allowed:
            problem = self._problem(scope["headers"])
        app = JSONResponse({"detail": problem}, 403) if problem else self._app
        await app(scope, receive, send)

    def _problem(self, headers: List[Tuple[bytes, bytes]]) -> Optional[str]:
        host, origin = (
            b", ".join(value for name, value in headers if name == wanted).decode("latin-1").lower()
            for wanted in (b"host", b"origin")
        )
        if not re.fullmatch(self._host, host):
            found = f"Host {host or 'missing'}"
        elif not origin or origin.endswith(f"//{host}") or re.fullmatch(self._origin, origin):
            return None
        else:
            found = f"Origin {origin}"
        return (
            f"{found}: expected one of {', '.join(self._allowed)}, with any port. If you trust "
            "this name, start the server with --allowed-host and the name."
        )


def listen(host: str, port: int) -> socket.socket:
    """Opens a listening socket. Raises `ConfigurationError` if the address cannot be used."""
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
    Serves an application until SIGINT or SIGTERM, then ends the process, with status 130 after
    SIGINT and 0 after SIGTERM. Requests not answered within 6 seconds of the signal are cancelled.
    Port 0 is any free port. `on_start` is called with the URL when the server listens.
    """
    import uvicorn

    # uvicorn's own handler raises the signal again at the end, and exits at once on a second one.
    signals: List[int] = []

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            signals.append(sig)
            self.should_exit = True

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
            timeout_graceful_shutdown=_SECONDS_TO_STOP,
        )
        Server(config).run(sockets=[listening])
    print("stopped.", file=sys.stderr, flush=True)
    # A normal exit waits for the models, and aborts the process in the middle of a batch.
    os._exit(INTERRUPTED if signal.SIGINT in signals[:1] else 0)
