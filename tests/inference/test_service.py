"""The HTTP service: what it answers, refuses and asks, on scripted engines; and as a process of its own."""

import asyncio
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp.test_utils import TestClient, TestServer
from servers import Reply, Request, error_answer, fake_server
from vllm_server import free_port
from watched import Watched

from inference import asking
from inference.config import validate
from inference.engines.base import EngineConfig, EngineError
from inference.engines.openai import OpenAIEngine
from inference.errors import UserError
from inference.panel import Panel
from inference.records import Call, Completion, Usage
from inference.rubric import Rubric, load_rubric
from inference.service import ServiceConfig, application, serve_judges
from inference.store import Store

ROOT = Path(__file__).parents[2]
ROPE = {"id": "a1", "scenario": "rope", "response": "a swing"}
TIN = {"id": "a2", "scenario": "tin", "response": "a drum"}
Answer = Callable[[Call], Completion]
Client = TestClient[Any, Any]


class Service:
    """A service in this process; `run` gives its client to a coroutine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engines: list[Watched] = []

    def run(
        self,
        talk: Callable[[Client], Awaitable[Any]],
        rubric: Rubric | None = None,
        answer: Answer | None = None,
        build: Callable[[EngineConfig], Any] | None = None,
        **settings: Any,
    ) -> Any:
        judge = {"id": "judge", "engine": "scripted", "model": "scripted", "method": "compact", "max_retries": 0}
        settings = {"rubric": "aut", "judges": judge, **settings}
        config = validate(settings, ServiceConfig, "test")
        asked_about = rubric or load_rubric(ROOT / "configs/rubrics/aut.yaml")

        def watched(model: EngineConfig) -> Watched:
            self.engines.append(Watched(model, answer))
            return self.engines[-1]

        async def go() -> Any:
            with Store(self.folder / "calls.sqlite") as store:
                panel = Panel(config.asked, asked_about, store, config.budget, build or watched)
                async with TestClient(TestServer(application(config, panel))) as client:
                    try:
                        return await talk(client)
                    finally:
                        await panel.close()

        return asyncio.run(go())

    @property
    def calls(self) -> int:
        return sum(len(engine.calls) for engine in self.engines)


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    monkeypatch.setattr(asking, "FIRST_WAIT", 0.001)
    return Service(tmp_path)


def post(*bodies: Any) -> Callable[[Client], Awaitable[list[tuple[int, Any]]]]:
    """Talk: send the bodies side by side; for each (status, answer). Texts and bytes are sent as they are."""

    async def one(client: Client, body: Any) -> tuple[int, Any]:
        data = body if isinstance(body, str | bytes) else json.dumps(body)
        async with client.post("/v1/judge", data=data) as answer:
            assert answer.content_type == "application/json"
            return answer.status, json.loads(await answer.read(), parse_constant=pytest.fail)

    async def all_of_them(client: Client) -> list[tuple[int, Any]]:
        return list(await asyncio.gather(*(one(client, body) for body in bodies)))

    return all_of_them


def fails_for(*words: str, retryable: bool = True) -> Answer:
    """Answers all calls but those whose prompt holds one of `words`."""

    def answer(call: Call) -> Completion:
        if any(word in (call.prompt or "") for word in words):
            raise EngineError("cannot be reached", retryable=retryable)
        return Completion(text="3", grid_logprobs={"3": -0.1, "4": float("-inf")}, usage=Usage(prompt=9, completion=1))

    return answer


def test_one_sample_is_answered_with_scores_and_usage(service: Service) -> None:
    ((status, answer),) = service.run(post(ROPE))
    assert status == 200
    assert answer["rubric"].startswith("aut@")
    (sample,) = answer["samples"]
    (judgement,) = sample["judgements"]
    assert (sample["id"], judgement["judge"], judgement["method"], judgement["repeat"]) == ("a1", "judge", "compact", 0)
    (score,) = judgement["scores"]
    assert (score["step"], score["dimension"]) == ("use", "originality")
    assert sum(score["distribution"].values()) == pytest.approx(1)
    assert score["value"] == pytest.approx(sum(float(s) * p for s, p in score["distribution"].items()))
    assert score["top"] == float(max(score["distribution"], key=score["distribution"].get))
    assert judgement["usage"]["calls"] == 1
    assert judgement["usage"]["prompt"] > 0


def test_batch_is_answered_in_its_order_judge_by_judge(service: Service) -> None:
    judges = [
        {"id": "one", "engine": "scripted", "model": "scripted", "method": "compact", "repeats": 2},
        {"id": "two", "engine": "scripted", "model": "other", "method": "compact"},
    ]
    batch = [TIN, {"scenario": "rope", "response": "  "}, ROPE]
    ((status, answer),) = service.run(post({"samples": batch}), judges=judges)
    assert status == 200
    assert [sample["id"] for sample in answer["samples"]][::2] == ["a2", "a1"]
    assert answer["samples"][1]["id"].startswith("aut-")
    for sample in answer["samples"]:
        assert [(j["judge"], j["repeat"]) for j in sample["judgements"]] == [("one", 0), ("one", 1), ("two", 0)]
    assert answer["samples"][1]["judgements"][0]["scores"][0]["unscored"] == "the response is empty"


def test_evidence_and_items_are_in_the_answer(service: Service, plan_rubric: Rubric) -> None:
    judge = {"id": "j", "engine": "scripted", "model": "m", "method": "creaeval"}
    judge["analyst"] = {"engine": "scripted", "model": "analyst"}
    sample = {"id": "p", "scenario": "A flood.", "ideas": "Build a dam.", "outcome": "A dam of stone."}
    ((status, answer),) = service.run(post(sample), plan_rubric, judges=judge)
    assert status == 200
    (judgement,) = answer["samples"][0]["judgements"]
    assert [part["step"] for part in judgement["evidence"]] == ["ideas", "outcome"]
    assert judgement["evidence"][0]["texts"] == {"fluency": "word", "novelty": "word"}
    assert {score["dimension"] for score in judgement["scores"]} == {"fluency", "novelty", "clarity"}
    assert judgement["usage"]["calls"] == 3
    assert "dam" not in json.dumps(judgement)


def test_samples_may_name_steps_by_their_labels(service: Service) -> None:
    rubric = load_rubric(ROOT / "configs/rubrics/cgpst.yaml")
    line = (ROOT / "eval/benchmarks/samples/cgpst_simulated.jsonl").read_text(encoding="utf-8").splitlines()[0]
    row = json.loads(line)
    labelled = {step.label: row.pop(step.name) for step in rubric.answered if step.name in row} | row
    results = service.run(post(line, labelled), rubric)
    (status, answer), (other_status, other) = results
    assert (status, other_status) == (200, 200)
    assert answer == other
    assert max(score["item"] for score in answer["samples"][0]["judgements"][0]["items"]) == 8


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("{", 400, "not JSON"),
        (b"\xff\xfe{", 400, "not JSON"),
        ("[" * 100_000, 400, "nested too deeply"),
        ('{"id": "a", "id": "b"}', 400, "repeated keys id"),
        ('{"id": NaN}', 400, "no finite number"),
        ([ROPE], 400, "no JSON object"),
        ({"samples": []}, 400, "at least one sample"),
        ({"samples": ROPE}, 400, "at least one sample"),
        ({"samples": [ROPE], "judge": "x"}, 400, 'has judge beside "samples"'),
        ({"samples": [ROPE, 3]}, 400, "sample 2 is not a JSON object"),
        ({"id": "x9", "scenario": "rope"}, 400, r"missing column response; sample 1 \(x9\) has id, scenario"),
        ({"samples": [ROPE, {"id": "b7", "scenario": "tin"}]}, 400, r"sample 2 \(b7\) has no response"),
        ({"samples": [ROPE, {**TIN, "response": ["x"]}]}, 400, r"sample 2 \(a2\): the response is a list"),
        ({"samples": [ROPE, ROPE]}, 400, r"sample 2 \(a1\) repeats the id 'a1' of sample 1 \(a1\)"),
        ({"samples": [{**ROPE, "id": str(i)} for i in range(4)]}, 413, "4 samples in one request, 3 are taken"),
        ({**ROPE, "response": "x" * 200_001}, 413, "larger than the 200000 bytes"),
    ],
)
def test_bad_request_is_refused_whole_before_anything_is_asked(
    service: Service, body: Any, status: int, message: str
) -> None:
    ((found, answer),) = service.run(post(body), max_samples=3, max_request_bytes=200_000)
    assert found == status
    assert list(answer) == ["error"]
    (reason,) = answer.values()
    assert re.search(message, reason), reason
    assert service.calls == 0


def test_other_paths_and_methods_are_refused_in_json(service: Service) -> None:
    async def talk(client: Client) -> list[tuple[int, Any, str | None]]:
        found = []
        for method, path in (("GET", "/nothing"), ("GET", "/v1/judge"), ("POST", "/health")):
            async with client.request(method, path) as answer:
                found.append((answer.status, await answer.json(), answer.headers.get("Allow")))
        return found

    missing, read, written = service.run(talk)
    assert missing == (404, {"error": "no such path; POST /v1/judge and GET /health are served"}, None)
    assert (read[0], read[2]) == (405, "POST")
    assert (written[0], written[2]) == (405, "GET, HEAD")
    assert written[1]["error"].startswith("POST is not taken here")


def test_health_names_rubric_judges_and_models(service: Service) -> None:
    async def talk(client: Client) -> Any:
        async with client.get("/health") as answer:
            return await answer.json()

    judge = {"id": "j", "engine": "scripted", "model": "m", "method": "creaeval"}
    found = service.run(talk, judges={**judge, "analyst": {"engine": "scripted", "model": "/secret/folder/analyst"}})
    assert found["rubric"].startswith("aut@")
    assert found["judges"] == [{"id": "j", "method": "creaeval", "repeats": 1}]
    assert [model["name"] for model in found["models"]] == ["m", "analyst"]


def test_fault_of_the_engine_in_one_sample_leaves_the_others(service: Service) -> None:
    ((status, answer),) = service.run(post({"samples": [ROPE, TIN]}), answer=fails_for("tin"))
    assert status == 200
    good, bad = (sample["judgements"][0] for sample in answer["samples"])
    assert good["scores"][0]["value"] == 3
    assert bad["scores"][0]["unscored"] == "engine: cannot be reached"
    assert (good["usage"]["calls"], bad["usage"]["calls"]) == (1, 0)


def test_engine_that_does_not_answer_is_503_with_the_reason(service: Service) -> None:
    ((status, answer),) = service.run(post({"samples": [ROPE, TIN]}), answer=fails_for("rope", "tin"))
    assert (status, answer) == (503, {"error": "engine: cannot be reached"})


def test_service_recovers_when_the_engine_does(service: Service) -> None:
    broken = [True]

    def answer(call: Call) -> Completion:
        return fails_for("rope" if broken[0] else "none")(call)

    async def talk(client: Client) -> list[int]:
        statuses = []
        for _ in range(9):  # more than a run would bear
            ((status, _),) = await post(ROPE)(client)
            statuses.append(status)
        broken[0] = False
        ((status, _),) = await post(ROPE)(client)
        return [*statuses, status]

    assert service.run(talk, answer=answer) == [503] * 9 + [200]


def test_refusal_of_one_response_by_a_working_engine_is_the_samples_own_reason(service: Service) -> None:
    async def talk(client: Client) -> Any:
        await post(ROPE)(client)
        return await post(TIN)(client)

    ((status, answer),) = service.run(talk, answer=fails_for("tin", retryable=False))
    assert status == 200
    assert answer["samples"][0]["judgements"][0]["scores"][0]["unscored"] == "engine: cannot be reached"


def test_spent_budget_is_503_and_what_is_in_the_store_is_still_answered(service: Service) -> None:
    async def talk(client: Client) -> Any:
        return [(await post(body)(client))[0] for body in (ROPE, TIN, ROPE, {"samples": [ROPE, TIN]})]

    first, second, again, both = service.run(talk, answer=fails_for("none"), budget={"max_tokens_total": 10})
    assert first[0] == 200
    assert second[0] == 503
    assert "the budget is spent (10 of 10 tokens)" in second[1]["error"]
    assert again == first
    good, unasked = (sample["judgements"][0]["scores"][0] for sample in both[1]["samples"])
    assert good["value"] == 3
    assert unasked["unscored"].startswith("budget: ")
    assert service.calls == 1


def test_same_question_side_by_side_is_asked_once_by_all_judges(service: Service) -> None:
    judges = [
        {"id": name, "engine": "scripted", "model": "scripted:0.02", "method": "compact"} for name in ("one", "two")
    ]
    results = service.run(post(*[ROPE] * 20), judges=judges)
    assert all(result == results[0] for result in results)
    assert service.calls == 1


def test_limit_of_calls_in_flight_holds_for_all_requests_together(service: Service) -> None:
    judge = {"id": "j", "engine": "scripted", "model": "scripted:0.005", "method": "compact", "concurrency": 5}
    bodies = [{"samples": [{"scenario": "rope", "response": f"use {i} of {j}"} for i in range(4)]} for j in range(10)]
    results = service.run(post(*bodies), judges=judge)
    assert {status for status, _ in results} == {200}
    assert service.calls == 40
    assert service.engines[0].most == 5


def test_questions_of_an_earlier_start_cost_nothing(service: Service) -> None:
    first = service.run(post(ROPE))
    assert service.run(post(ROPE)) == first
    assert service.calls == 1


def test_half_a_surrogate_pair_leaves_an_answer_that_is_json(service: Service) -> None:
    ((status, answer),) = service.run(post('{"id": "\\ud800", "scenario": "rope", "response": "x \\udfff"}'))
    assert status == 200
    assert answer["samples"][0]["id"] == "\ufffd"


def test_fault_of_the_program_is_500_without_its_text(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise KeyError("inner workings")

    monkeypatch.setattr("inference.service._judged", broken)
    ((status, answer),) = service.run(post(ROPE))
    assert status == 500
    assert "inner" not in answer["error"]


def test_no_key_in_answers(service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-123")

    def echo(request: Request) -> Reply:
        return error_answer(500, f"you sent {request.headers['authorization']}")

    with fake_server(echo) as server:
        judge = {"id": "j", "engine": "openai", "model": "m", "method": "compact", "api_key_env": "MY_KEY"}
        judge |= {"base_url": server.url, "max_retries": 0}
        ((status, answer),) = service.run(post(ROPE), judges=judge, build=OpenAIEngine)
    assert status == 503
    assert "500" in answer["error"]
    assert "secret" not in json.dumps(answer) + caplog.text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"judges": []}, "no judge"),
        ({"port": 0}, "port"),
        ({"max_samples": 0}, "max_samples"),
        ({"key": "x"}, "unknown key"),
        ({"base_url": "http://me:pass@127.0.0.1:1/v1"}, "give a key by `api_key_env`"),
        ({"base_url": "http://127.0.0.1:1/v1?key=pass"}, "give a key by `api_key_env`"),
    ],
)
def test_mistakes_in_the_config_are_one_sentence(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    judge = {"id": "j", "engine": "openai", "model": "m", "method": "compact", "base_url": "http://127.0.0.1:1/v1"}
    judge |= {key: change.pop(key) for key in ("base_url",) if key in change}
    path = tmp_path / "service.yaml"
    path.write_text(yaml.safe_dump({"rubric": "aut", "judges": judge} | change))
    with pytest.raises(UserError, match=message) as fault:
        serve_judges(path)
    assert "pass@" not in str(fault.value)


def write_config(folder: Path, **settings: Any) -> tuple[Path, int]:
    port = free_port()
    judge = {"id": "j", "engine": "scripted", "model": "scripted", "method": "compact"}
    path = folder / "service.yaml"
    path.write_text(yaml.safe_dump({"rubric": "configs/rubrics/aut.yaml", "judges": judge, "port": port, **settings}))
    return path, port


def wait_for(port: int) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5)
            return
        except urllib.error.URLError:
            time.sleep(0.05)
    pytest.fail("the service did not start")


@contextmanager
def started(config: Path, port: int) -> Iterator["subprocess.Popen[str]"]:
    """The command as a process, from when it answers."""
    command = [sys.executable, "-m", "inference", "service", "--config", str(config)]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "LANG": "C"}
    ) as process:
        try:
            wait_for(port)
            yield process
        finally:
            process.kill()


def ask(port: int, answers: list[Any]) -> threading.Thread:
    """A request from a thread, sent once the service is up. Its answer, or None without one, is added to `answers`."""

    def go() -> None:
        wait_for(port)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/judge", json.dumps(ROPE).encode()) as answer:
                answers.append(json.load(answer))
        except (OSError, http.client.HTTPException):
            answers.append(None)

    thread = threading.Thread(target=go)
    thread.start()
    return thread


def behind(url: str) -> dict[str, Any]:
    return {"id": "j", "engine": "openai", "model": "m", "base_url": url, "method": "compact"}


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_signal_ends_the_process_when_what_is_under_way_is_answered(tmp_path: Path, number: int, code: int) -> None:
    asked, ended = threading.Event(), threading.Event()

    def reply(_: Request) -> Reply:
        asked.set()
        ended.wait(30)
        return Reply({"choices": [{"index": 0, "text": "3", "finish_reason": "stop"}]}, delay=0.2)

    answers: list[Any] = []
    with fake_server(reply) as server:
        config, port = write_config(tmp_path, judges=behind(server.url))
        with started(config, port) as process:
            request = ask(port, answers)
            assert asked.wait(30)
            process.send_signal(number)
            ended.set()
            out, errors = process.communicate(timeout=30)
            request.join(30)
    assert (process.returncode, errors) == (code, "")
    assert f"judging at http://127.0.0.1:{port}/v1/judge" in out
    assert answers[0]["samples"][0]["judgements"][0]["scores"][0]["value"] == 3


def test_signal_cancels_what_takes_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inference.service.GRACE", 0.1)
    ended = threading.Event()

    def reply(_: Request) -> Reply:
        os.kill(os.getpid(), signal.SIGTERM)
        ended.wait(30)
        return Reply({}, status=500)

    answers: list[Any] = []
    with fake_server(reply) as server:
        config, port = write_config(tmp_path, judges=behind(server.url))
        request = ask(port, answers)
        assert serve_judges(config) == 0
        assert not ended.is_set()
        ended.set()
        request.join(30)
    assert answers == [None]


def test_store_and_port_belong_to_one_process(tmp_path: Path) -> None:
    config, port = write_config(tmp_path, store=str(tmp_path / "kept"))
    with started(config, port):
        with pytest.raises(UserError, match=f"port {port} of 127.0.0.1 is in use"):
            serve_judges(config)
        other, _ = write_config(tmp_path, store=str(tmp_path / "kept"))
        with pytest.raises(UserError, match="another process works in"):
            serve_judges(other)
