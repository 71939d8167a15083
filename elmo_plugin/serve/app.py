import asyncio
import base64
import hashlib
import logging
import re
import time
from concurrent.futures import Future
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any, AsyncIterator, Dict, Optional, Tuple, Union

from elmo_plugin.serve.requests import EXAMPLES, Limits, TooLarge, schema
from elmo_plugin.serve.served_task import ServedTask
from elmo_plugin.serve.server_metrics import ServerMetrics
from elmo_plugin.serve.word_analyzer import WordAnalyzer
from elmo_plugin.serve.worker import Handler, QueueFull, Worker, WorkerEnded
from elmo_plugin.util.errors import ConfigurationError

logger = logging.getLogger(__name__)

WORD = "word"
# Seconds in which a client must have sent the body of its request.
_TIME_TO_SEND = 30.0
_SUMMARIES = {
    "ner": "Names in a sentence",
    "srl": "Who did what to whom: the roles of the predicates of a sentence",
    "coref": "Which mentions of a text refer to the same entity",
    "squad": "The answer to a question, in a passage",
    "snli": "Whether a premise entails or contradicts a hypothesis",
    "sst": "The sentiment of a sentence",
    WORD: "Surprisal and nearest contexts of a word in its sentence",
}
_RESPONSES: Dict[Union[int, str], Dict[str, Any]] = {
    200: {"description": "The answer", "content": {"application/json": {}}},
    403: {"description": "Host or Origin of the request is not allowed"},
    408: {"description": "The request was not sent in time"},
    413: {"description": "The request is too large"},
    422: {"description": "The request has another form; the detail says which is expected"},
    500: {"description": "The model failed on this request; the server's log says why"},
    503: {"description": "Too many requests are waiting, or the server cannot answer any more"},
}


class _Disconnected(Exception):
    """The client has disconnected before its answer."""


def make_app(
    tasks: Dict[str, ServedTask],
    words: Optional[WordAnalyzer] = None,
    limits: Limits = Limits(),  # noqa: B008 (it is frozen)
    batch_size: int = 16,
    max_queue_size: int = 256,
) -> Any:
    """
    The server as a FastAPI application.

    `POST /predict/TASK` takes an input line of `allennlp predict` and answers with an output line;
    for `POST /word` see `WordAnalyzer`. `GET /` is the page, `/models` lists the tasks, `/health`
    whether requests can be answered; also `/metrics`, for Prometheus, and `/openapi.json`.

    # Parameters

    tasks : `Dict[str, ServedTask]`
        By name.
    words : `Optional[WordAnalyzer]`, optional (default = `None`)
        Answers `POST /word`. By default the server has no such path.
    limits : `Limits`, optional (default = `Limits()`)
        Bounds the size of the body of a request. The words are bounded by the limits of the tasks
        and of `words`.
    batch_size, max_queue_size : `int`
        See `Worker`.
    """
    from fastapi import FastAPI, Request, Response
    from fastapi.responses import HTMLResponse

    server_metrics = ServerMetrics()
    handlers: Dict[str, Handler] = {name: task.answer for name, task in tasks.items()}
    if words is not None:
        handlers[WORD] = words.answer
    worker = Worker(handlers, batch_size, max_queue_size, server_metrics.batch)
    server_metrics.waiting.set_function(lambda: worker.num_waiting)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        worker.start()
        yield
        worker.stop()

    app = FastAPI(
        title="elmo_plugin",
        description="Trained models of ELMo's six tasks.",
        lifespan=lifespan,
        # FastAPI's pages of documentation load scripts from other servers.
        docs_url=None,
        redoc_url=None,
    )
    app.state.worker = worker

    def answering(kind: str) -> Any:
        async def answer(request: Request) -> Response:
            start = time.perf_counter()
            reply = await _reply(worker, kind, request, limits)
            server_metrics.request(kind, reply.status_code, time.perf_counter() - start)
            return reply

        return answer

    for kind in handlers:
        app.post(
            f"/{kind}" if kind == WORD else f"/predict/{kind}",
            summary=_SUMMARIES[kind],
            operation_id=kind,
            responses=_RESPONSES,
            openapi_extra={
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": schema(kind)}},
                }
            },
        )(answering(kind))

    page, policy = _page()

    @app.get("/", response_class=HTMLResponse, summary="The page")
    async def show_page() -> HTMLResponse:
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    @app.get("/models", summary="The tasks, an example of each, and its layer weights")
    async def models() -> Dict[str, Any]:
        described = {
            name: {"example": EXAMPLES[name], "layer_weights": task.layer_weights}
            for name, task in tasks.items()
        }
        return {"tasks": described, "word": words is not None}

    @app.get("/health", summary="Whether requests can be answered", responses={503: {}})
    async def health(response: Response) -> Dict[str, Any]:
        response.status_code = 200 if worker.is_alive else 503
        status = "ok" if worker.is_alive else "the model thread has ended; restart the server"
        return {"status": status, "tasks": list(tasks), "waiting": worker.num_waiting}

    @app.get("/metrics", summary="Metrics in the text format of Prometheus")
    async def metrics() -> Response:
        return Response(
            server_metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    return app


async def _reply(worker: Worker, kind: str, request: Any, limits: Limits) -> Any:
    """Reads a request, waits for its answer, and cancels it if the client disconnects."""
    from fastapi import Response

    try:
        text = await asyncio.wait_for(_body(request, limits.max_bytes), _TIME_TO_SEND)
        answer = await _answer(worker.submit(kind, text), request)
        return Response(answer, media_type="application/json")
    except _Disconnected:
        # Nobody reads it; the status is for `/metrics`.
        return Response(status_code=499)
    except TooLarge as error:
        return _problem(413, str(error))
    except (ValueError, ConfigurationError) as error:
        return _problem(422, str(error))
    except asyncio.TimeoutError:
        return _problem(408, f"the request was not sent within {_TIME_TO_SEND:.0f} seconds.")
    except QueueFull:
        return _problem(503, "too many requests are waiting. Try again later.")
    except WorkerEnded:
        return _problem(503, "the server cannot answer any more; restart it.")
    except asyncio.CancelledError:
        return _problem(503, "the server stops. Try again later.")
    except Exception:
        logger.exception("%s: a request failed", kind)
        return _problem(500, "the model failed on this request; the server's log says why.")


async def _body(request: Any, max_bytes: int) -> str:
    body, more = bytearray(), True
    while more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise _Disconnected
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > max_bytes:
            raise TooLarge(f"the request: expected at most {max_bytes:,} bytes, found more.")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"the request: expected UTF-8, found other bytes ({error}).") from error


async def _answer(future: "Future[str]", request: Any) -> str:
    """The answer. Raises `_Disconnected` if the client disconnects before it."""
    answer: Any = asyncio.wrap_future(future)
    gone: Any = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            raise _Disconnected
        return await answer
    finally:
        gone.cancel()
        # Also cancels `future`, so that it is not computed if it still waits.
        answer.cancel()


async def _gone(request: Any) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _problem(status: int, detail: str) -> Any:
    from fastapi.responses import JSONResponse

    return JSONResponse({"detail": detail}, status, {"Retry-After": "1"} if status == 503 else None)


def _page() -> Tuple[str, str]:
    """The page, and a Content-Security-Policy that forbids it to load anything else."""
    page = (files("elmo_plugin.serve") / "page.html").read_text(encoding="utf-8")
    sources = []
    for element in ("script", "style"):
        (content,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        sources.append(f"{element}-src 'sha256-{digest}'")
    policy = f"default-src 'none'; connect-src 'self'; img-src data:; {'; '.join(sources)}"
    return page, f"{policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
