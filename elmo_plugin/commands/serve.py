"""
Serve trained models over HTTP, with a web page that shows their predictions.

ARCHIVE is the model.tar.gz or the folder of a training run, at most one per task; by default those
that come with the project. Nothing in it is executed.

POST /predict/TASK takes a line of JSON as `allennlp predict` reads it, and answers with the line
that it writes. / is the page; docs/serve.md lists the other requests. The models stay in RAM and
use all cores but one, or OMP_NUM_THREADS. There is neither encryption nor authentication.

example:
    %(prog)s out/ner_elmo/model.tar.gz out/srl_elmo/model.tar.gz --neighbours out/index
    curl http://127.0.0.1:8000/predict/ner -d '{"sentence": "Ada lives in London."}'
"""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import List, Optional

import torch

import elmo_plugin
from elmo_plugin.analysis.neighbours import ContextIndex
from elmo_plugin.commands.arguments import PositiveInt, option, positional, whole_number
from elmo_plugin.commands.bilm_arguments import BilmArguments
from elmo_plugin.commands.command import say
from elmo_plugin.serve.app import make_app
from elmo_plugin.serve.served_task import Limits, load_tasks
from elmo_plugin.serve.server import AllowedHosts, listen, serve
from elmo_plugin.serve.word_analyzer import WordAnalyzer, shipped_contexts
from elmo_plugin.util.errors import optional_package
from elmo_plugin.util.files import TAGGER, find_archive, shipped_archives


@dataclass(kw_only=True)
class Options(BilmArguments):
    archive: List[str] = positional("ARCHIVE", "model.tar.gz, folder or name", nargs="*")
    host: str = option(
        "address to listen on; 0.0.0.0: reachable from other machines",
        "127.0.0.1",
    )
    allowed_host: Optional[List[str]] = option(
        "a name by which requests may reach the server, such as that of a proxy; may be "
        "repeated, * allows all (allowed by default: localhost and --host)",
        action="append",
        nargs=None,
        metavar="NAME",
    )
    port: int = option(
        "0 for a free one",
        8000,
        type=partial(whole_number, allowed=range(2**16), expected="from 0 to 65535"),
    )
    batch_size: PositiveInt = option("maximum number of requests in a batch", 16)
    max_queue_size: PositiveInt = option(
        "maximum number of waiting requests; further ones are answered with status 503", 256
    )
    max_words: PositiveInt = option("maximum number of words in a request", Limits.max_words)
    neighbours: Optional[Path] = option(
        "an index that `elmo neighbours build` wrote with this biLM, for /word (default: a small "
        "one of the shipped biLM)",
        metavar="FOLDER",
    )


def run(args: Options) -> str:
    # Before the models are loaded, to name a missing package or a port in use at once.
    for package in ("fastapi", "uvicorn"):
        optional_package(package, "A server", "fastapi uvicorn")
    listen(args.host, args.port).close()
    number = args.device.number
    limits = Limits(max_words=args.max_words)
    bilm = args.load_bilm()
    index = ContextIndex(args.neighbours) if args.neighbours else shipped_contexts(bilm)
    softmax = args.find_softmax()
    words = WordAnalyzer(bilm, softmax, index, limits)
    overrides = {"model.dtype": "bfloat16"} if args.bfloat16 else {}
    load = partial(elmo_plugin.load_predictor, cuda_device=number, overrides=overrides)
    shipped = [path for name, path in shipped_archives().items() if name != TAGGER]
    tasks = load_tasks([*map(find_archive, args.archive)] or shipped, load, limits)
    app = make_app(tasks, words, limits, args.batch_size, args.max_queue_size)
    host = f"[{args.host}]" if ":" in args.host else args.host
    app.add_middleware(AllowedHosts, hosts=[host, *(args.allowed_host or [])])
    app.version = elmo_plugin.__version__
    # Leaves a core to HTTP: if one thread of PyTorch shared a core with it, all would wait.
    if "OMP_NUM_THREADS" not in os.environ:
        torch.set_num_threads(max(1, torch.get_num_threads() - 1))
    for name, task in tasks.items():
        say(f"{name}: warming up")
        task.warm_up(args.batch_size)
    names = ", ".join(tasks)
    serve(app, args.host, args.port, lambda url: say(f"{url} answers {names}. Ctrl+C stops it."))
    return ""
