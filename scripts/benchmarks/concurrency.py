"""How well calls in flight hide a server's latency: `creaeval` on simulated CGPST, beside the sequential loop.

    python scripts/benchmarks/concurrency.py
    python scripts/benchmarks/concurrency.py --samples 40 --in-flight 16 --latency 0.2

A server of its own, in another process, checks each request and answers a fixed time after it came in, with a valid
object for the JSON schema asked for. Times are those of whole runs, with prompts, store and judgements written to disk.
The sequential loop goes first, on `--sequential` samples, so the concurrent run does not pay for importing the client.
"""

import argparse
import asyncio
import multiprocessing
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from aiohttp import web

from eval.benchmarks.cgpst.benchmark import CgpstConfig, load
from eval.benchmarks.simulation.files import RATINGS, SCENARIO_FILE, write_simulation
from inference.engines.base import EngineConfig
from inference.engines.scripted import ScriptedEngine
from inference.judgement_file import JudgementFile
from inference.judges import JudgeConfig
from inference.records import Call, Message, Sample
from inference.rubric import Rubric, load_rubric
from inference.runner import run_judges
from inference.store import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200, help="at most 200, in the order of the simulation")
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--latency", type=float, default=0.5, help="seconds from a request to its answer")
    parser.add_argument("--sequential", type=int, default=2, help="samples of the sequential loop")
    options = parser.parse_args()
    rubric = load_rubric("cgpst")
    samples = simulated(rubric)[: options.samples]
    with server(options.latency) as url:
        alone, alone_calls = timed(samples[: options.sequential], rubric, url, in_flight=1)
        seconds, calls = timed(samples, rubric, url, options.in_flight)
    ideal = calls * options.latency / options.in_flight
    sequential = alone / alone_calls * calls
    print(f"calls                     {calls}")
    print(f"wall seconds              {seconds:.2f}")
    print(f"ideal seconds             {ideal:.2f}")
    print(f"efficiency                {ideal / seconds:.3f}")
    print(f"sequential, extrapolated  {sequential:.1f} seconds, from {alone_calls} calls")
    print(f"speed-up                  {sequential / seconds:.1f}")


def simulated(rubric: Rubric) -> Sequence[Sample]:
    """All samples of the simulation with seed 0."""
    with tempfile.TemporaryDirectory() as folder:
        write_simulation(folder)
        files = {"ratings": f"{folder}/{RATINGS}", "scenarios": f"{folder}/{SCENARIO_FILE}"}
        return load(CgpstConfig(name="cgpst", **files, part="all"), rubric).samples


def timed(samples: Sequence[Sample], rubric: Rubric, url: str, in_flight: int) -> tuple[float, int]:
    """Seconds of a run in a folder of its own, and the calls it sent. Raises RuntimeError where a score is missing."""
    judge = JudgeConfig.model_validate(
        {
            "id": "judge",
            "engine": "openai",
            "model": "answers",
            "base_url": url,
            "method": "creaeval",
            "concurrency": in_flight,
            "max_retries": 0,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        with Store(Path(folder) / "calls.sqlite") as store, JudgementFile(Path(folder) / "judgements.jsonl") as sink:
            (run,) = asyncio.run(run_judges(samples, [judge], rubric, store, sink, quiet=True))
            seconds = time.perf_counter() - started
            unscored = {score.unscored for judgement in sink.read() for score in judgement.scores} - {None}
        if unscored or run.judgements != len(samples):
            raise RuntimeError(f"not all was scored: {sorted(map(str, unscored))[:3]}")
    return seconds, run.sent


@contextmanager
def server(latency: float) -> Iterator[str]:
    """A server in a process of its own at a free local port; gives its base URL."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=serve, args=(latency, there), daemon=True)
    process.start()
    try:
        if not here.poll(60):
            raise RuntimeError("the server did not start within a minute")
        yield f"http://127.0.0.1:{here.recv()}/v1"
    finally:
        process.terminate()
        process.join()


def serve(latency: float, started: Connection) -> None:
    """Answer chat completions, each `latency` seconds after its request came in; sends the port through `started`."""
    scripted = ScriptedEngine(EngineConfig(engine="scripted", model="answers"))

    async def answer(request: web.Request) -> web.Response:
        loop = asyncio.get_running_loop()
        due = loop.time() + latency
        try:
            body = await request.json()
            schema = body["response_format"]["json_schema"]["schema"]
            call = Call(
                messages=tuple(Message.model_validate(message) for message in body["messages"]), json_schema=schema
            )
        except (ValueError, KeyError, TypeError) as error:
            return web.json_response({"error": {"message": f"invalid request: {error}"}}, status=400)
        completion = await scripted.complete(call)
        usage = {"prompt_tokens": completion.usage.prompt, "completion_tokens": completion.usage.completion}
        message = {"role": "assistant", "content": completion.text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        await asyncio.sleep(due - loop.time())
        return web.json_response(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 0,
                "model": "answers",
                "choices": [choice],
                "usage": {**usage, "total_tokens": sum(usage.values())},
            }
        )

    async def run() -> None:
        application = web.Application(client_max_size=2**24)
        application.router.add_post("/v1/chat/completions", answer)
        runner = web.AppRunner(application, access_log=None)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        started.send(runner.addresses[0][1])
        await asyncio.Event().wait()

    asyncio.run(run())


if __name__ == "__main__":
    main()
