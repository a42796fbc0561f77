"""Judge responses over HTTP, with engines that are built once and stay open.

    python -m inference serve --config configs/serving/cgpst_pair_smollm2.yaml            # the models
    python -m inference service --config configs/serving/cgpst_pair_service.yaml          # the judges
    head -n 1 eval/benchmarks/samples/cgpst_simulated.jsonl | curl -s http://127.0.0.1:8080/v1/judge -d @-

``POST /v1/judge`` takes one sample, in the form of a line of the JSON lines that ``inference judge`` reads, or
``{"samples": [...]}``. Its answer holds, for each sample in the order of the request, the judgements of every judge:
scores, scores of items, evidence and usage. ``GET /health`` names rubric, judges and models. A fault is
``{"error": "…"}``: 400 for a bad request, which is refused whole before anything is asked, 413 for one too large, 503
where nothing could be judged because an engine doesn't answer or the budget is spent.
"""

import asyncio
import json
import logging
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from aiohttp import web
from pydantic import Field, model_validator

from inference.adapter_notes import check_trained_for
from inference.config import Whole, load_config
from inference.errors import UserError, named, named_list
from inference.files import os_errors, parse_json
from inference.judges import Judges, refuse_evidence_files
from inference.panel import BUDGET, Panel, fault_of
from inference.records import Judgement, Sample
from inference.rubric import Rubric, load_rubric
from inference.run_dir import hold_directory
from inference.samples import Columns, samples_of
from inference.serve import check_port
from inference.store import Store

logger = logging.getLogger(__name__)

GRACE = 5.0
"""Seconds that requests under way may take to finish once the service is told to stop."""
LEFT_OUT = {"sample_id", "rubric", "calls"}
"""Fields of a judgement that an answer says elsewhere, or that mean nothing outside."""
PATHS = "POST /v1/judge and GET /health are served"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class ServiceConfig(Judges):
    """Settings of ``python -m inference service``. Paths are relative to the working directory."""

    rubric: str
    """A rubric file."""
    columns: Columns = Columns()
    """Which key of a sample holds what."""
    host: str = "127.0.0.1"
    """Address to listen on. The service asks for no key, so keep it local unless the network is yours."""
    port: Whole = Field(default=8080, ge=1, le=65535)
    store: str | None = None
    """Directory of the store of finished calls, made where absent: with it a question that was answered before costs
    nothing, and a `budget` holds for all starts together. Default: a temporary one for each start."""
    max_samples: Whole = Field(default=64, ge=1)
    """Most samples of one request."""
    max_request_bytes: Whole = Field(default=1_000_000, ge=1)

    @model_validator(mode="after")
    def _has_judges(self) -> "ServiceConfig":
        if not self.asked:
            raise ValueError("no judge: fill `judges`, `grid` or both")
        refuse_evidence_files(self.asked)
        return self

    @model_validator(mode="after")
    def _no_key_in_an_url(self) -> "ServiceConfig":
        # The endpoint stands in messages that clients get to read.
        for url in (model.base_url or "" for judge in self.asked for model in judge.models):
            if "@" in urlsplit(url).netloc or urlsplit(url).query:
                raise ValueError("a base_url holds a user name, password or query; give a key by `api_key_env` instead")
        return self


class Refusal(UserError):
    """A request that is answered with an error status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def serve_judges(config_path: Path) -> int:
    """The command: serve until a signal ends it. Returns the exit code, 130 after Ctrl-C, 0 after SIGTERM.

    Raises UserError for a missing rubric, model or adapter, a port in use, and a store that another process uses.
    """
    config = load_config(config_path, ServiceConfig)
    rubric = load_rubric(config.rubric)
    check_trained_for(config.asked, rubric)
    check_port(config.host, config.port)
    with _folder(config.store) as folder, Store(folder / "calls.sqlite") as store:
        return asyncio.run(_run(config, Panel(config.asked, rubric, store, config.budget)))


@contextmanager
def _folder(named_one: str | None) -> Iterator[Path]:
    """The store's directory, held against other processes; without a name one that is gone afterwards."""
    if named_one is None:
        with tempfile.TemporaryDirectory() as temporary:
            yield Path(temporary)
        return
    folder = Path(named_one)
    with os_errors(folder, "cannot be used as the directory of the store; choose another one"):
        folder.mkdir(parents=True, exist_ok=True)
    with hold_directory(folder):
        yield folder


async def _run(config: ServiceConfig, panel: Panel) -> int:
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[int] = loop.create_future()

    def end(code: int) -> None:
        if not stop.done():
            stop.set_result(code)

    for number, code in ((signal.SIGINT, 130), (signal.SIGTERM, 0)):
        loop.add_signal_handler(number, end, code)
    runner = web.AppRunner(application(config, panel), access_log=None, shutdown_timeout=GRACE)
    try:
        await runner.setup()
        with os_errors(f"{config.host}:{config.port}", "cannot listen there; set another `port`"):
            await web.TCPSite(runner, config.host, config.port).start()
        for judge in config.asked:
            print(f"judge {judge.id} ({judge.method}) of {panel.rubric.name}")
        print(f"judging at http://{config.host}:{config.port}/v1/judge", flush=True)
        return await stop
    finally:
        await runner.cleanup()
        await panel.close()


def application(config: ServiceConfig, panel: Panel) -> web.Application:
    """The service without its server."""

    async def judge(request: web.Request) -> web.Response:
        samples = read_request(await request.read(), panel.rubric, config)
        try:
            found = await panel.judge(samples)
            _check_any_use(found, panel)
            return _answer(_judged(samples, found, panel))
        except Refusal:
            raise
        except UserError as error:
            raise Refusal(500, str(error)) from None

    async def health(_: web.Request) -> web.Response:
        return _answer(_description(panel))

    app = web.Application(middlewares=[_faults_as_json], client_max_size=config.max_request_bytes)
    app.router.add_post("/v1/judge", judge)
    app.router.add_get("/health", health)
    return app


def read_request(body: bytes, rubric: Rubric, config: ServiceConfig) -> list[Sample]:
    """The samples of a request. Raises UserError for the first fault found, `Refusal` for too many samples."""
    try:
        content = parse_json(body, finite=True)
    except ValueError as error:
        raise UserError(f"the request is not JSON ({error})") from None
    if not isinstance(content, dict):
        raise UserError('the request is no JSON object; send one sample, or {"samples": [...]}')
    rows = [content]
    if "samples" in content:
        rows = content["samples"]
        if others := sorted(content.keys() - {"samples"}):
            raise UserError(f'the request has {named_list(others)} beside "samples"; remove it, or send one sample')
        if not isinstance(rows, list) or not rows:
            raise UserError('"samples" needs a list of at least one sample')
    if len(rows) > config.max_samples:
        raise Refusal(413, f"{len(rows)} samples in one request, {config.max_samples} are taken: send them in parts")
    placed = [(_place(number, row, config.columns), row) for number, row in enumerate(rows, 1)]
    for place, row in placed:
        if not isinstance(row, dict):
            raise UserError(f"{place} is not a JSON object")
    return samples_of(placed, "the request", rubric, config.columns)


def _place(number: int, row: Any, columns: Columns) -> str:
    """How messages call a sample: its number, and its id where it has one."""
    identifier = row.get(columns.id) if isinstance(row, dict) else None
    return f"sample {number}" + (f" ({named(identifier, 40)})" if isinstance(identifier, str) and identifier else "")


def _check_any_use(found: list[list[Judgement]], panel: Panel) -> None:
    """Raise `Refusal` where no sample with a response was judged, for a reason that isn't the sample's own."""
    faults = [
        fault_of(judgement)
        for judgements in found
        for judgement in judgements
        if judgement.calls or fault_of(judgement)  # the others are of empty responses
    ]
    reasons = [reason for reason in faults if reason]
    if not reasons or len(reasons) < len(faults):
        return
    if panel.silent or any(reason.startswith(BUDGET) for reason in reasons):
        raise Refusal(503, next((r for r in reasons if r.startswith(BUDGET)), reasons[0]))
    if all(reason.startswith("method: ") for reason in reasons):
        raise Refusal(500, reasons[0])


def _judged(samples: list[Sample], found: list[list[Judgement]], panel: Panel) -> dict[str, Any]:
    def shown(judgement: Judgement) -> dict[str, Any]:
        own = judgement.model_dump(mode="json", exclude_none=True, exclude=LEFT_OUT)
        return {**own, "usage": panel.usage(judgement).model_dump()}

    return {
        "rubric": f"{panel.rubric.name}@{panel.rubric.digest}",
        "samples": [
            {"id": sample.id, "judgements": [shown(judgement) for judgement in judgements]}
            for sample, judgements in zip(samples, found, strict=True)
        ],
    }


def _description(panel: Panel) -> dict[str, Any]:
    """Without addresses and paths: only what a client may know."""
    return {
        "rubric": f"{panel.rubric.name}@{panel.rubric.digest}",
        "judges": [{"id": judge.id, "method": judge.method, "repeats": judge.repeats} for judge in panel.judges],
        "models": [
            {"name": Path(model.model).name, **{key: text for key, text in identity.items() if key != "base_url"}}
            for model, identity in panel.models
        ],
    }


@web.middleware
async def _faults_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except Refusal as refusal:
        return _fault(refusal.status, str(refusal))
    except UserError as error:
        return _fault(400, str(error))
    except web.HTTPRequestEntityTooLarge:
        return _fault(413, f"the request is larger than the {request.client_max_size} bytes that are taken")
    except web.HTTPMethodNotAllowed as error:
        allowed = {"Allow": ", ".join(sorted(error.allowed_methods))}
        return _fault(405, f"{request.method} is not taken here; {PATHS}", allowed)
    except web.HTTPNotFound:
        return _fault(404, f"no such path; {PATHS}")
    except web.HTTPException as error:
        return _fault(error.status, error.reason)
    except Exception:
        logger.exception("fault in %s %s", request.method, request.path)
        return _fault(500, "a fault of the service; its log has the reason")


def _fault(status: int, message: str, headers: dict[str, str] | None = None) -> web.Response:
    return _answer({"error": message}, status, headers)


def _answer(content: dict[str, Any], status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    # Half a surrogate pair, as a model's evidence may hold one, is no UTF-8: it becomes a question mark.
    body = json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return web.Response(body=body, status=status, headers=headers, content_type="application/json")
