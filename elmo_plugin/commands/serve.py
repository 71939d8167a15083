import os
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from functools import partial
from pathlib import Path
from typing import Optional

import torch

import elmo_plugin
from elmo_plugin.analysis.neighbours import ContextIndex
from elmo_plugin.bilm.files.softmax import find_softmax
from elmo_plugin.commands.bilm_arguments import add_bilm_arguments, chosen_bilm, positive_number
from elmo_plugin.commands.command import say
from elmo_plugin.serve.app import make_app
from elmo_plugin.serve.served_task import Limits, load_tasks
from elmo_plugin.serve.server import AllowedHosts, listen, serve
from elmo_plugin.serve.word_analyzer import WordAnalyzer
from elmo_plugin.util.optional import optional_package
from elmo_plugin.util.resources import shipped_archives

DESCRIPTION = """\
Serve trained models over HTTP, with a web page that shows their predictions.

ARCHIVE is the model.tar.gz or the folder of a training run, at most one per task; by default those
that come with the project. Nothing in it is executed.

POST /predict/TASK takes a line of JSON as `allennlp predict` reads it, and answers with the line
that it writes. POST /word returns the surprisal of a word in its sentence, and its nearest
contexts. /health, /metrics and /openapi.json are for programs, / is the page.

Requests of a task that arrive while others are answered are answered in one batch. The models use
all cores but one, or OMP_NUM_THREADS. They stay in RAM; there is neither encryption nor
authentication.
"""

EPILOG = """\
example:
    %(prog)s out/ner_elmo/model.tar.gz out/srl_elmo/model.tar.gz --neighbours out/index
    curl http://127.0.0.1:8000/predict/ner -d '{"sentence": "Ada lives in London."}'
"""

STOPPED = "stopped."


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("archive", metavar="ARCHIVE", nargs="*", help="model.tar.gz or folder")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 0.0.0.0: reachable from other machines (default: 127.0.0.1)",
    )
    parser.add_argument(
        "--allowed-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a name by which requests may reach the server, such as that of a proxy; may be "
        "repeated, * allows all (allowed by default: localhost and --host)",
    )
    parser.add_argument("--port", type=_port, default=8000, help="0 for a free one (default: 8000)")
    parser.add_argument(
        "--batch-size",
        type=positive_number,
        default=16,
        metavar="N",
        help="maximum number of requests in a batch (default: 16)",
    )
    parser.add_argument(
        "--max-queue-size",
        type=positive_number,
        default=256,
        metavar="N",
        help="maximum number of waiting requests; further ones are answered with status 503 "
        "(default: 256)",
    )
    parser.add_argument(
        "--max-words",
        type=positive_number,
        default=Limits.max_words,
        metavar="N",
        help=f"maximum number of words in a request (default: {Limits.max_words})",
    )
    parser.add_argument(
        "--neighbours",
        metavar="FOLDER",
        help="an index that `elmo neighbours build` wrote with this biLM, for /word",
    )
    add_bilm_arguments(parser)


def run(args: Namespace) -> str:
    # Before the models are loaded, to name a missing package or a port in use at once.
    for package in ("fastapi", "prometheus_client", "uvicorn"):
        optional_package(package, "A server", "'elmo-plugin[serve]'")
    listen(args.host, args.port).close()
    limits = Limits(max_words=args.max_words)
    overrides = {"model.dtype": "bfloat16"} if args.bfloat16 else {}
    load = partial(elmo_plugin.load_predictor, cuda_device=args.cuda_device, overrides=overrides)
    words = _word_analyzer(args, limits)
    tasks = load_tasks(args.archive or shipped_archives().values(), load, limits)
    app = make_app(tasks, words, limits, args.batch_size, args.max_queue_size)
    host = f"[{args.host}]" if ":" in args.host else args.host
    app.add_middleware(AllowedHosts, hosts=[host, *args.allowed_host])
    app.version = elmo_plugin.__version__

    def tell(url: str) -> None:
        say(f"{url} answers {', '.join(tasks)}. Ctrl+C stops it.")

    # Leaves a core to HTTP: if one thread of PyTorch shared a core with it, all would wait.
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, torch.get_num_threads() - 1))
    for name, task in tasks.items():
        say(f"{name}: warming up")
        task.warm_up(args.batch_size)
    serve(app, args.host, args.port, tell)
    return ""


def _word_analyzer(args: Namespace, limits: Limits) -> WordAnalyzer:
    bilm = chosen_bilm(args)
    index: Optional[ContextIndex] = None
    if args.neighbours is not None:
        index = ContextIndex(Path(args.neighbours))
    return WordAnalyzer(bilm, find_softmax(args.weight_file, bilm.options), index, limits)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) >= 2**16:
        raise ArgumentTypeError(f"expected a whole number from 0 to 65535, found {text}")
    return int(text)
