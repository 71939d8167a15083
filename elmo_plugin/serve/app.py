import asyncio
import base64
import hashlib
import logging
import re
from contextlib import asynccontextmanager
from dataclasses import asdict
from importlib.resources import files
from typing import Any, AsyncIterator, Dict, Optional, Tuple, Union

from elmo_plugin.serve.batches import Batches, Handler, Unavailable
from elmo_plugin.serve.served_task import Limits, ServedTask, TooLarge
from elmo_plugin.serve.word_analyzer import WordAnalyzer
from elmo_plugin.util.errors import ConfigurationError

logger = logging.getLogger(__name__)

# Seconds that a client has to send the body of its request.
_TIME_TO_SEND = 30.0
_RESPONSES: Dict[Union[int, str], Dict[str, Any]] = {
    200: {"description": "The answer", "content": {"application/json": {}}},
    403: {"description": "Host or Origin of the request is not allowed"},
    408: {"description": "The request was not sent in time"},
    413: {"description": "The request is too large"},
    422: {"description": "The request has another form; the detail says which is expected"},
    500: {"description": "The model failed on this request; the server's log says why"},
    503: {"description": "Too many requests are waiting, or the server cannot answer any more"},
}


def make_app(
    tasks: Dict[str, ServedTask],
    words: Optional[WordAnalyzer] = None,
    limits: Limits = Limits(),  # noqa: B008 (it is frozen)
    batch_size: int = 16,
    max_queue_size: int = 256,
) -> Any:
    """
    Builds the server as a FastAPI application.

    `POST /predict/TASK` takes an input line of `allennlp predict` and returns its output line.
    `POST /draw/TASK` returns what the page draws. `POST /word` exists only with `words`; see
    `WordAnalyzer`. `GET /` is the page, `/models` lists the tasks, and `/health` says whether
    requests can be answered. Only `limits.max_bytes` is used here. For `batch_size` and
    `max_queue_size` see `Batches`.
    """
    from fastapi import FastAPI, Request, Response

    handlers = {name: Handler(task.read, task.answer) for name, task in tasks.items()}
    handlers |= {f"draw/{name}": Handler(task.read, task.draw) for name, task in tasks.items()}
    if words is not None:
        handlers["word"] = Handler(words.read, words.answer)
    batches = Batches(handlers, batch_size, max_queue_size)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batches.start()
        yield
        await batches.stop()

    app = FastAPI(
        title="elmo_plugin",
        description="Trained models with ELMo.",
        lifespan=lifespan,
        # FastAPI's documentation pages load scripts from other servers.
        docs_url=None,
        redoc_url=None,
    )
    app.state.batches = batches

    def add(path: str, kind: str, **openapi: Any) -> None:
        async def answer(request: Request) -> Response:
            return await _reply(batches, kind, request, limits)

        app.post(path, operation_id=kind, **openapi)(answer)

    for name, task in tasks.items():
        add(f"/predict/{name}", name, **_described(task.predictor))
        add(f"/draw/{name}", f"draw/{name}", include_in_schema=False)
    if words is not None:
        add("/word", "word", **_described(words))
    models = {name: task.description() for name, task in tasks.items()}
    served = {
        "tasks": models,
        "word": words is not None,
        "contexts": getattr(words, "source", ""),
        "limits": asdict(limits),
    }
    _add_pages(app, served, batches)
    return app


def _described(answering: Any) -> Dict[str, Any]:
    """What `/openapi.json` says about the requests of a task, or about `/word`."""
    form = {"type": "object", "properties": answering.schema, "examples": [answering.example]}
    body = {"required": True, "content": {"application/json": {"schema": form}}}
    return {
        "summary": answering.summary,
        "responses": _RESPONSES,
        "openapi_extra": {"requestBody": body},
    }


def _add_pages(app: Any, served: Dict[str, Any], batches: Batches) -> None:
    from fastapi import Response
    from fastapi.responses import HTMLResponse

    page, policy = _page()

    @app.get("/", response_class=HTMLResponse, summary="The page")
    async def show_page() -> HTMLResponse:
        return HTMLResponse(page, headers={"Content-Security-Policy": policy})

    @app.get("/models", summary="The tasks, with examples and layer weights; and limits")
    async def models() -> Dict[str, Any]:
        return served

    @app.get("/health", summary="Whether requests can be answered", responses={503: {}})
    async def health(response: Response) -> Dict[str, Any]:
        response.status_code = 200 if batches.is_alive else 503
        status = "ok" if batches.is_alive else "nothing is answered any more; restart the server"
        return {"status": status, "tasks": [*served["tasks"]], "waiting": batches.num_waiting}


async def _reply(batches: Batches, kind: str, request: Any, limits: Limits) -> Any:
    """Reads a request, waits for its answer, and cancels it if the client disconnects."""
    from fastapi import Response
    from starlette.requests import ClientDisconnect

    try:
        body = await asyncio.wait_for(_body(request, limits.max_bytes), _TIME_TO_SEND)
        answer = asyncio.ensure_future(batches.answer(kind, body))
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not answer.done():
                raise ClientDisconnect
            return Response(await answer, media_type="application/json")
        finally:
            gone.cancel()
            # If it still waits in the queue, it is not computed.
            answer.cancel()
    except ClientDisconnect:
        # Nobody reads this response.
        return Response(status_code=499)
    except (ValueError, ConfigurationError, Unavailable) as error:
        return _problem(getattr(error, "status", 422), str(error))
    except asyncio.TimeoutError:
        return _problem(408, f"the request was not sent within {_TIME_TO_SEND:.0f} seconds.")
    except asyncio.CancelledError:
        return _problem(503, "the server stops. Try again later.")
    except Exception:
        logger.exception("%s: a request failed", kind)
        return _problem(500, "the model failed on this request; the server's log says why.")


async def _body(request: Any, max_bytes: int) -> str:
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > max_bytes:
            raise TooLarge(f"the request: expected at most {max_bytes:,} bytes, found more.")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"the request: expected UTF-8, found other bytes ({error}).") from error


async def _gone(request: Any) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _problem(status: int, detail: str) -> Any:
    from fastapi.responses import JSONResponse

    return JSONResponse({"detail": detail}, status, {"Retry-After": "1"} if status == 503 else None)


def _page() -> Tuple[str, str]:
    """The page, and a Content-Security-Policy that lets it load nothing else."""
    page = (files("elmo_plugin.serve") / "page.html").read_text(encoding="utf-8")
    sources = []
    for element in ("script", "style"):
        (content,) = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        sources.append(f"{element}-src 'sha256-{digest}'")
    policy = f"default-src 'none'; connect-src 'self'; img-src data:; {'; '.join(sources)}"
    return page, f"{policy}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
