import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from elmo_plugin.serve.server import AllowedHosts

ANY = ["0.0.0.0"]


@pytest.mark.parametrize(
    "hosts, host, origin, refused",
    [
        # Names of this machine, with any port.
        ([], "localhost:8000", None, None),
        ([], "LOCALHOST", "http://localhost:8000", None),
        ([], "127.0.0.1:1", "http://127.0.0.1:1", None),
        ([], "[::1]:8000", "http://[::1]:8000", None),
        ([], "localhost:8000", "http://127.0.0.1:3000", None),
        # A page whose name leads to this machine, and a page of another site.
        ([], "evil.example:8000", None, "Host"),
        ([], "evil.example:8000", "http://evil.example:8000", "Host"),
        ([], "localhost:8000", "http://evil.example", "Origin"),
        ([], "localhost:8000", "https://localhost.evil.example", "Origin"),
        ([], "localhost:8000", "null", "Origin"),
        ([], "localhost:8000", "chrome-extension://localhost", "Origin"),
        # What is no host.
        ([], None, None, "Host"),
        ([], "", None, "Host"),
        ([], "evil.example@localhost", None, "Host"),
        ([], "localhost:8000:8000", None, "Host"),
        ([], "localhost:evil.example", None, "Host"),
        ([], "localhost/", None, "Host"),
        ([], "::1", None, "Host"),
        ([], "[::1", None, "Host"),
        # Names that are given.
        (["Elmo.example"], "elmo.example", "https://elmo.example", None),
        (["elmo.example"], "localhost:8000", "https://elmo.example", None),
        (["elmo.example"], "www.elmo.example", None, "Host"),
        (["192.168.1.5"], "192.168.1.5:8000", "http://192.168.1.5:8000", None),
        (["192.168.1.5"], "192.168.1.6:8000", None, "Host"),
        # A server of all addresses is asked by any; a page may only ask the address it is from.
        (ANY, "192.168.1.5:8000", "http://192.168.1.5:8000", None),
        (["[::]"], "[fe80::1]:8000", "http://[fe80::1]:8000", None),
        (ANY, "evil.example:8000", None, "Host"),
        (ANY, "192.168.1.5:8000", "http://192.168.1.6:8000", "Origin"),
        (["*"], "evil.example", "null", None),
        (["*"], None, None, None),
    ],
)
def test_a_request_needs_an_allowed_host_and_origin(hosts, host, origin, refused):
    app = FastAPI()
    app.add_middleware(AllowedHosts, hosts=hosts)
    given = {name: value for name, value in (("Host", host), ("Origin", origin)) if value}
    client = TestClient(app)
    # The client adds a Host itself, unless it is empty.
    answer = client.get("/", headers={"Host": "", **given})
    assert answer.status_code == (403 if refused else 404)
    if refused:
        found = given.get(refused, "missing").lower()
        detail = answer.json()["detail"]
        assert detail.startswith(f"{refused} {found}: expected one of localhost, ")
        assert "--allowed-host" in detail


def test_two_hosts_are_refused():
    app = FastAPI()
    app.add_middleware(AllowedHosts, hosts=[])
    two = [("Host", "localhost"), ("Host", "evil.example")]
    answer = TestClient(app).get("/", headers=two)
    assert answer.status_code == 403 and "localhost, evil.example" in answer.text
