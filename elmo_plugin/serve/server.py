import os
import resource
import socket
import sys
from typing import Any, Callable, NoReturn

from elmo_plugin.util.errors import ConfigurationError

# Docker kills a container after 10.
_SECONDS_TO_STOP = 6
_BACKLOG = 1024


def listen(host: str, port: int) -> socket.socket:
    """A socket of this address; `ConfigurationError` if it cannot be used."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot listen on {host}, port {port} ({error.strerror or error}). Choose another "
            "--port, or an address of this machine as --host."
        ) from error


def serve(app: Any, host: str, port: int, on_start: Callable[[str], object]) -> NoReturn:
    """
    Serves an application until SIGINT or SIGTERM. Requests that are not answered 6 seconds later
    are cancelled, and the process ends with 0.

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

    from elmo_plugin.serve.connection import SECONDS_TO_SEND, Connection

    Connection.max_connections = _allow_files(Connection.max_connections)
    with listen(host, port) as listening:
        shown = f"[{host}]" if listening.family == socket.AF_INET6 else host
        on_start(f"http://{shown}:{listening.getsockname()[1]}/")
        config = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            log_level="error",
            access_log=False,
            backlog=_BACKLOG,
            timeout_keep_alive=SECONDS_TO_SEND,
            timeout_graceful_shutdown=_SECONDS_TO_STOP,
        )
        server = uvicorn.Server(config)
        # uvicorn's own raises the signal again in the end, and a second signal leaves at once.
        server.handle_exit = lambda *_: setattr(server, "should_exit", True)  # type: ignore
        server.run(sockets=[listening])
    print("stopped.", file=sys.stderr, flush=True)
    # A usual end waits for the models, and aborts the process in the middle of a batch.
    os._exit(0)


def _allow_files(num_connections: int) -> int:
    """
    Raises the limit of open files for this many connections, and returns how many it permits. The
    other half is for files, and for connections accepted before others are closed.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = 2 * num_connections
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
    return limit // 2
