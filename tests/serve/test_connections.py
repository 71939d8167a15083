"""What bad clients do to a real server, and how it ends."""

import http.client
import json
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.guide import PROJECT
from tests.waiting import wait_until

# Seconds that the servers of these tests wait for a request.
SECONDS_TO_WAIT = 2.0
HOST = b" HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /predict/ner" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


class Server:
    def __init__(self, seconds_to_wait=SECONDS_TO_WAIT, files=None):
        def limit_files():
            if files is not None:
                resource.setrlimit(resource.RLIMIT_NOFILE, files)

        module = "tests.serve.stub_server"
        self.process = subprocess.Popen(
            [sys.executable, "-m", module, str(seconds_to_wait)],
            stderr=subprocess.PIPE, text=True, cwd=PROJECT, preexec_fn=limit_files,
        )  # fmt: skip
        url = self.process.stderr.readline()
        self.port = int(re.match(r"http://127\.0\.0\.1:(\d+)/", url)[1])

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def ask(self, method="GET", path="/health", body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body)
            response = connection.getresponse()
            return response.status, response.getheader("Retry-After"), json.load(response)
        finally:
            connection.close()

    def predict(self, seconds):
        return self.ask("POST", "/predict/ner", json.dumps({"tokens": [str(seconds)]}))


@pytest.fixture(scope="module")
def files():
    """Allows this process 9,000 open files."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 9000:
        pytest.skip("this process may not open 9,000 files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 9000), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def start():
    servers = []

    def make(*arguments, **settings):
        servers.append(Server(*arguments, **settings))
        return servers[-1]

    yield make
    for server in servers:
        server.process.kill()
        server.process.communicate()


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.process.kill()
    assert "Traceback" not in server.process.communicate()[1]


def close(sockets):
    for each in sockets:
        each.close()


def is_closed(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


@pytest.mark.usefixtures("files")
def test_idle_connections_keep_nobody_out_and_the_oldest_are_closed(start):
    server = start(60)
    idle = [server.connect() for _ in range(2000)]
    begin = time.perf_counter()
    assert server.ask()[0] == 200 and server.predict(0)[0] == 200
    assert time.perf_counter() - begin < 5
    time.sleep(2)
    assert not any(map(is_closed, idle))
    # The server has at most 4,096, whatever the process may open.
    later = [server.connect() for _ in range(2500)]
    assert server.ask()[0] == 200 and server.predict(0)[0] == 200
    wait_until(lambda: sum(map(is_closed, idle)) >= 400)
    assert not any(map(is_closed, later))
    close(idle + later)


def test_a_server_that_may_open_few_files_answers_too(start):
    server = start(60, files=(100, 400))
    idle = [server.connect() for _ in range(300)]
    assert server.ask()[0] == 200
    wait_until(lambda: sum(map(is_closed, idle)) == 100)
    close(idle)


@pytest.mark.usefixtures("files")
def test_of_a_thousand_simultaneous_requests_the_queue_is_answered(start):
    server = start(60)
    with ThreadPoolExecutor(1000) as pool:
        answers = list(pool.map(lambda _: server.predict(0.2), range(1000)))
    found = Counter((status, wait) for status, wait, _ in answers)
    # 256 wait, and 16 are in the batch.
    assert set(found) == {(200, None), (503, "1")} and found[200, None] >= 256
    assert {len(answer["detail"]) > 10 for status, _, answer in answers if status == 503} == {True}


@pytest.mark.parametrize(
    "start, part",
    [
        (b"GET /health" + HOST, b"X: a\r\n"),
        (b"GET /", b"a"),
        (CHUNKED + b"0\r\n", b"X: a\r\n"),
        (CHUNKED + b"0;", b"a"),
        (b"GET /health" + HOST + b"\r\n", b"GET /health" + HOST + b"\r\n"),
    ],
    ids=["headers", "url", "trailers", "chunk extension", "pipelined"],
)
def test_what_does_not_end_is_cut_at_once(server, start, part):
    connection, sent = server.connect(), 0
    block = part * (100_000 // len(part))
    with pytest.raises((BrokenPipeError, ConnectionResetError)):
        connection.sendall(start)
        while sent < 100e6:
            connection.sendall(block)
            sent += len(block)
    assert server.ask()[0] == 200


@pytest.mark.parametrize(
    "request_, status, answer",
    [
        (b"GET /health" + HOST + b"X: " + 60_000 * b"a" + b"\r\n\r\n", 200, b'"ok"'),
        (b"\x16\x03\x01\x02\r\n\r\n", 400, b"Invalid HTTP"),
        (b"GET /health HTTP/1.1\r\n\r\n", 400, b"Invalid HTTP"),
        (b"GET /health HTTP/1.0\r\n\r\n", 403, b"Host missing: expected one of localhost"),
        (
            b"GET /health" + HOST + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n",
            200,
            b'"ok"',
        ),
    ],
)
def test_a_request_of_another_form_is_answered(server, request_, status, answer):
    connection = server.connect()
    connection.sendall(request_)
    response = http.client.HTTPResponse(connection)
    response.begin()
    assert response.status == status and answer in response.read()


@pytest.mark.parametrize(
    "start, part, answer",
    [
        (b"", b"", b""),
        (b"GET /health" + HOST + b"X: ", b"a", b""),
        (b"GET /health" + HOST + b"\r\n", b"", b'"ok"'),
        (CHUNKED, b"1\r\na\r\n", b" 408 "),
        (POST.replace(b"ner", b"no") + b"Content-Length: 1000\r\n\r\n", b"a", b" 404 "),
    ],
    ids=["idle", "header", "answered", "chunks", "refused"],
)
def test_a_connection_waits_for_a_request_for_some_time(server, start, part, answer):
    begin, connection = time.perf_counter(), server.connect()
    connection.sendall(start)
    connection.settimeout(0.1)
    received, open_ = b"", True
    while open_ and time.perf_counter() - begin < 30:
        try:
            connection.sendall(part)
            got = connection.recv(4096)
            received, open_ = received + got, got != b""
        except socket.timeout:
            pass
        except (BrokenPipeError, ConnectionResetError):
            open_ = False
    assert answer in received and (answer or not received)
    # uvicorn gives an answered connection 5 seconds; otherwise the server looks once a second.
    assert SECONDS_TO_WAIT - 0.1 < time.perf_counter() - begin < SECONDS_TO_WAIT + 5


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]])
def test_a_signal_under_load_leaves_no_request_without_an_answer(start, signals):
    server, answers = start(60), []
    threads = [
        threading.Thread(target=lambda: answers.append(server.predict(4))) for _ in range(24)
    ]
    for thread in threads:
        thread.start()
    idle, half = server.connect(), server.connect()
    half.sendall(POST + b"Content-Length: 1000\r\n\r\n")
    while server.ask()[2]["waiting"] < 8:
        time.sleep(0.01)
    begin = time.perf_counter()
    for each in signals:
        server.process.send_signal(each)
        time.sleep(0.3)
    said = server.process.communicate(timeout=30)[1]
    assert time.perf_counter() - begin < 10
    assert server.process.returncode == (130 if signal.SIGINT in signals else 0)
    assert "Traceback" not in said and said.endswith("stopped.\n")
    for thread in threads:
        thread.join()
    found = Counter(status for status, _, _ in answers)
    assert found[200] >= 1 and found[200] + found[503] == 24
    assert {answer[1] for answer in answers if answer[0] == 503} == {"1"}
    assert is_closed(idle)
    assert half.recv(1000).startswith(b"HTTP/1.1 503 ")
