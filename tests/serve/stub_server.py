"""
A server whose model answers a request after the seconds that its first word says.

    python -m tests.serve.stub_server
"""

import json
import sys
import time

from elmo_plugin.corpora.json_lines import parse_object
from elmo_plugin.serve.app import make_app
from elmo_plugin.serve.served_task import Limits, ServedTask
from elmo_plugin.serve.server import AllowedHosts, serve


class StubPredictor:
    """What a server needs of a predictor: of words, without a model."""

    title, summary = "Words", "The words of a sentence"
    example = {"tokens": ["0"]}
    schema = {"tokens": {"type": "array"}}
    page = {"examples": [], "labels": {}}

    def load_request(self, text):
        return parse_object(text, "the request", '{"tokens": ["0"]}')

    def completed(self, line):
        return line

    def texts(self, line):
        return [line["tokens"]]

    def predict_batch_json(self, lines):
        time.sleep(max(float(line["tokens"][0]) for line in lines))
        return [{"tokens": line["tokens"]} for line in lines]

    def dump_line(self, output):
        return json.dumps(output) + "\n"


def main():
    served = make_app({"ner": ServedTask(StubPredictor(), Limits())})
    served.add_middleware(AllowedHosts, hosts=[])
    serve(served, "127.0.0.1", 0, lambda url: print(f"{url} answers", file=sys.stderr, flush=True))


if __name__ == "__main__":
    main()
