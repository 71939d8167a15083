import re
from ipaddress import ip_address
from typing import Any, Iterable, List, Optional, Tuple

#: A name or an address, IPv6 in brackets.
HOST = r"(\[[^]]*\]|[^:\[\]]+)"
_LOCAL = ("localhost", "127.0.0.1", "[::1]")
# What a server listens on to be reached by any address of its machine.
_ANY_ADDRESS = {"0.0.0.0", "[::]"}


class AllowedHosts:
    """
    Refuses requests that pages of other sites make in a browser. The name of such a site can be
    made to lead to this server (DNS rebinding), but the browser sends it as `Host` or `Origin`.

    A request needs one `Host` that is allowed, with any port. An `Origin` must be the same, or
    allowed, too.

    # Parameters

    app : `Any`
        An ASGI application.
    hosts : `Iterable[str]`
        What is allowed beside localhost: names and addresses, IPv6 in brackets. `*` allows
        everything; `0.0.0.0` and `[::]` allow a `Host` that is an address, as no name led to it.
    """

    def __init__(self, app: Any, hosts: Iterable[str]) -> None:
        self._app = app
        self._allowed = dict.fromkeys((*_LOCAL, *(host.lower() for host in hosts)))

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        from fastapi.responses import JSONResponse

        problem = self._problem(scope["headers"]) if scope["type"] == "http" else None
        app = JSONResponse({"detail": problem}, 403) if problem else self._app
        await app(scope, receive, send)

    def _problem(self, headers: List[Tuple[bytes, bytes]]) -> Optional[str]:
        if "*" in self._allowed:
            return None
        hosts, origins = (
            [value.decode("latin-1").lower() for name, value in headers if name == wanted]
            for wanted in (b"host", b"origin")
        )
        if len(hosts) != 1 or not self._allows(hosts[0], bool(_ANY_ADDRESS & {*self._allowed})):
            return self._refusal("Host", hosts)
        for origin in origins:
            scheme, _, host = origin.partition("://")
            if scheme not in ("http", "https") or not (host in hosts or self._allows(host, False)):
                return self._refusal("Origin", origins)
        return None

    def _allows(self, host: str, any_address: bool) -> bool:
        found = re.fullmatch(rf"{HOST}(:\d+)?", host)
        return found is not None and (
            found[1] in self._allowed or any_address and _is_address(found[1])
        )

    def _refusal(self, header: str, found: List[str]) -> str:
        return (
            f"{header}: expected one of {', '.join(self._allowed)}, with any port, found "
            f"{', '.join(found) or 'none'}. If it is a name of this server or of a site you trust, "
            "start the server with --allowed-host and this name."
        )


def _is_address(host: str) -> bool:
    try:
        return bool(ip_address(host.strip("[]")))
    except ValueError:
        return False
