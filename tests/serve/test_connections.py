"""What bad clients do to a real server, and how it ends."""

import http.client
import json
import re
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

HOST = b" HTTP/1.1\r\nHost: localhost\r\n"
POST = b"POST /predict/ner" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


class Server:
    def __init__(self):
        command = [sys.executable, "-m", "tests.serve.stub_server"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=PROJECT)
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


@pytest.fixture
def start():
    servers = []

    def make():
        servers.append(Server())
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


def is_closed(connection):
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_of_400_simultaneous_requests_the_queue_is_answered(start):
    server = start()
    with ThreadPoolExecutor(400) as pool:
        answers = list(pool.map(lambda _: server.predict(0.2), range(400)))
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
    ],
    ids=["headers", "url", "trailers", "chunk extension"],
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


@pytest.mark.parametrize("signals", [[signal.SIGTERM], [signal.SIGINT, signal.SIGINT]])
def test_a_signal_under_load_leaves_no_request_without_an_answer(start, signals):
    server, answers = start(), []
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
