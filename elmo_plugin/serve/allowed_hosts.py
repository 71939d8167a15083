import re
from typing import Any, Iterable, List, Optional, Tuple

_LOCAL = ["localhost", "127.0.0.1", "[::1]"]


class AllowedHosts:
    """
    ASGI middleware that refuses what a page of another site asks through a browser. The name of
    such a site may lead to this server (DNS rebinding), but the browser sends it as `Host` or
    `Origin`. An allowed `Host` is needed; an `Origin` must be the same or allowed. Any port is.

    # Parameters

    app : `Any`
    hosts : `Iterable[str]`
        What is allowed beside localhost, IPv6 in brackets. `*` allows everything; `0.0.0.0` and
        `[::]` allow a `Host` that is an address, because no name led to it.
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
