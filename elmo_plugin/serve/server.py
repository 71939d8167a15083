import socket
from typing import Any, Callable

from elmo_plugin.util.errors import ConfigurationError

# For requests that do not wait: the current batch, the page, `/health` and `/metrics`.
_MORE_CONNECTIONS = 256
_SECONDS_TO_STOP = 10


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


def serve(
    app: Any, host: str, port: int, max_queue_size: int, on_start: Callable[[str], object]
) -> None:
    """
    Serves an application until SIGINT or SIGTERM, which then have their usual effect.

    # Parameters

    app : `Any`
        See `make_app`.
    host : `str`
        The address to listen on.
    port : `int`
        0 for any free one.
    max_queue_size : `int`
        See `Worker`. Connections beyond `max_queue_size + 256` are also answered with 503.
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
            log_level="warning",
            access_log=False,
            limit_concurrency=max_queue_size + _MORE_CONNECTIONS,
            timeout_graceful_shutdown=_SECONDS_TO_STOP,
        )
        uvicorn.Server(config).run(sockets=[listening])
