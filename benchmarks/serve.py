"""
`elmo serve` under load: many clients at once, each of which waits for its answer before it asks
again.

    python benchmarks/serve.py out/ner_elmo/model.tar.gz out/snli_elmo/model.tar.gz
    python benchmarks/serve.py out/ner_elmo --requests 200 --clients 4 --output results.json

Needs trained models, and a tokenised text of 320 sentences, one per line, of which the requests are
made. The server is a separate process on this machine; the clients are threads of this process.
`p95` is the 95th percentile of the time from a request to its answer; its peer is the time that the
predictor, called directly while the server idles, takes for a batch of one request per client.
`growth of RAM` is that of the server. Both leave out the first tenth of the requests. `lost` counts
those without an answer, or with another one than the predictor gives to this request alone (numbers
may differ by 1e-4); `another last digit` those not answered exactly as by the predictor.
"""

import http.client
import json
import math
import os
import re
import signal
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence

from common import Row, add_text, measuring_parser, read_sentences, report
from latency import percentile_95

import elmo_plugin

FLOOR = "<= 1.5x"
NUM_TEXTS = 64
SENTENCES_PER_TEXT = 5
MAX_DIFFERENCE = 1e-4


def requests_of(task: str, sentences: Sequence[Sequence[str]]) -> List[str]:
    """Different requests of one or two sentences, or of five where a task reads longer texts."""
    made = []
    for first in range(0, NUM_TEXTS * SENTENCES_PER_TEXT, SENTENCES_PER_TEXT):
        group = sentences[first : first + SENTENCES_PER_TEXT]
        lines = [" ".join(words) for words in group]
        line: Dict[str, Any] = {
            "ner": {"tokens": group[0]},
            "sst": {"tokens": group[0]},
            "snli": {"premise_tokens": group[0], "hypothesis_tokens": group[1]},
            "srl": {"tokens": group[0], "predicates": [len(group[0]) // 2]},
            "coref": {"sentences": group},
            "squad": {"passage": " ".join(lines), "question": lines[0]},
        }[task]
        made.append(json.dumps(line))
    return made


class Server:
    """`elmo serve` of one archive, in a process of its own."""

    def __init__(self, archive: Path, batch_size: int) -> None:
        script = "from elmo_plugin.commands.main import main; main()"
        command = [sys.executable, "-c", script, "serve", str(archive), "--port", "0"]
        self.process = subprocess.Popen(
            [*command, "--batch-size", str(batch_size)], stderr=subprocess.PIPE, text=True
        )
        said = ""
        for line in self.process.stderr:
            said += line
            if found := re.match(r"http://127\.0\.0\.1:(\d+)/", line):
                self.port = int(found[1])
                break
        else:
            raise SystemExit(f"The server did not start: {said}")
        # If later output were not read, it could fill the pipe and block the server.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def memory(self) -> float:
        """Resident memory of the server in MB."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return float(re.search(r"^VmRSS:\s*(\d+) kB", text, re.M)[1]) / 2**10

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


class Load:
    """Clients and their results: seconds of each request, lost and differing answers."""

    def __init__(self, port: int, task: str, requests: List[str], expected: List[Any]) -> None:
        self.port, self.path = port, f"/predict/{task}"
        self.requests, self.expected = requests, expected
        self.seconds: List[float] = []
        self.lost = self.differing = 0
        self._lock = threading.Lock()

    def run(self, num_clients: int, num_requests: int) -> None:
        numbers = iter(range(num_requests))
        clients = [
            threading.Thread(target=self._client, args=(numbers,)) for _ in range(num_clients)
        ]
        for client in clients:
            client.start()
        for client in clients:
            client.join()

    def _client(self, numbers: Iterator[int]) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        while True:
            with self._lock:
                number = next(numbers, None)
            if number is None:
                return
            which = number % len(self.requests)
            start = time.perf_counter()
            try:
                connection.request("POST", self.path, self.requests[which])
                response = connection.getresponse()
                body = response.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                response, body = None, b""
            seconds = time.perf_counter() - start
            answer = json.loads(body) if response is not None and response.status == 200 else None
            with self._lock:
                self.seconds.append(seconds)
                self.lost += not is_close(answer, self.expected[which])
                self.differing += answer != self.expected[which]


def is_close(found: Any, expected: Any) -> bool:
    """Whether both are equal, with numbers that differ by `MAX_DIFFERENCE` at most."""
    if isinstance(expected, float):
        return isinstance(found, float) and abs(found - expected) <= MAX_DIFFERENCE
    if isinstance(expected, dict):
        # The order of answers with almost equal probabilities may change.
        return isinstance(found, dict) and all(
            is_close(found.get(key), value) for key, value in expected.items() if key != "n_best"
        )
    if isinstance(expected, list):
        return (
            isinstance(found, list)
            and len(found) == len(expected)
            and all(map(is_close, found, expected))
        )
    return found == expected


def measure(
    archive: Path, sentences: Sequence[Sequence[str]], num_clients: int, num_requests: int
) -> Iterator[Row]:
    predictor = elmo_plugin.load_predictor(archive)
    task = predictor._model.default_predictor.removeprefix("elmo-")
    requests = requests_of(task, sentences)
    lines = [predictor.load_request(request) for request in requests]
    expected = [json.loads(predictor.dump_line(predictor.predict_json(line))) for line in lines]
    server = Server(archive, num_clients)
    try:
        # Each batch is timed twice, after a warm-up with the first one.
        batches = [
            [lines[(first + number) % len(lines)] for number in range(num_clients)]
            for first in range(0, min(num_requests, len(lines)), num_clients)
        ]
        seconds = [timed(predictor, batch) for batch in (batches[0], *batches, *batches)][1:]
        batch_seconds = statistics.median(seconds)
        first_tenth = math.ceil(num_requests / 10)
        load = Load(server.port, task, requests, expected)
        load.run(num_clients, first_tenth)
        before = server.memory()
        load.seconds.clear()
        load.run(num_clients, num_requests - first_tenth)
        growth = server.memory() - before
    finally:
        server.stop()
    name = f"Serve {task}, {num_clients} clients, {num_requests:,} requests"
    late = 1000 * percentile_95(load.seconds)
    yield Row(f"{name}: p95 against one batch", "ms", late, 1000 * batch_seconds, floor=FLOOR)
    yield Row(f"{name}: lost", "requests", load.lost, floor="<= 0 requests")
    yield Row(f"{name}: another last digit", "requests", load.differing)
    yield Row(f"{name}: growth of RAM", "MB", growth, floor="<= 32 MB")


def timed(predictor: Any, batch: List[Any]) -> float:
    start = time.perf_counter()
    predictor.predict_batch_json(batch)
    return time.perf_counter() - start


def main() -> None:
    parser = measuring_parser(__doc__)
    parser.add_argument("archive", type=Path, nargs="+", help="trained models, one of each task")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=10_000)
    add_text(parser, "--text")
    arguments = parser.parse_args()
    # The server does not cache layers, so the predictor must not either.
    os.environ["ELMO_CACHE"] = ""
    sentences = read_sentences(arguments.text, NUM_TEXTS * SENTENCES_PER_TEXT)
    for archive in arguments.archive:
        rows = measure(archive, sentences, arguments.clients, arguments.requests)
        report(rows, arguments.output)


if __name__ == "__main__":
    main()
