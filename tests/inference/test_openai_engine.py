"""The OpenAI engine against a scripted local server."""

import asyncio
import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from servers import FakeServer, Reply, Request, chat_answer, error_answer, fake_server

from inference.engines import EngineConfig
from inference.engines.base import EngineError
from inference.engines.openai import OpenAIEngine
from inference.engines.openai_errors import retry_after
from inference.errors import UserError
from inference.records import Call, Completion, Message

KEY = "sk-test-0123456789"
GRID = ("1", "2", "3", "4", "5")
MESSAGES = (Message(role="user", content="Rate it."),)
NUMBER = Call(messages=MESSAGES, grid=GRID, max_tokens=8)
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False}
JSON = Call(messages=MESSAGES, json_schema=SCHEMA, max_tokens=30)
COMPACT = Call(prompt="brick: a <|im_end|> b\n", grid=GRID)


def ask(
    answer: Callable[[Request], Reply], *calls: Call, **settings: Any
) -> tuple[list[Completion | BaseException], FakeServer]:
    """Results of `calls`, asked one after the other, and the server with its requests."""

    async def run(url: str) -> list[Completion | BaseException]:
        engine = OpenAIEngine(EngineConfig(engine="openai", model="m", base_url=url, **settings))
        results: list[Completion | BaseException] = []
        for call in calls:
            results += await asyncio.gather(engine.complete(call), return_exceptions=True)
        await engine.close()
        return results

    with fake_server(answer) as server:
        return asyncio.run(run(server.url)), server


def one(answer: Callable[[Request], Reply], call: Call, **settings: Any) -> Completion:
    (result,), _ = ask(answer, call, **settings)
    assert isinstance(result, Completion), result
    return result


def failure(answer: Callable[[Request], Reply], **settings: Any) -> EngineError:
    (result,), _ = ask(answer, NUMBER, **settings)
    assert isinstance(result, EngineError), result
    return result


def test_chat_request_and_answer() -> None:
    (result,), server = ask(lambda _: Reply(chat_answer("4")), NUMBER.model_copy(update={"seed": 5, "repeat": 2}))
    assert isinstance(result, Completion)
    assert (result.text, result.finish_reason, result.grid_logprobs) == ("4", "stop", None)
    usage = result.usage
    assert (usage.prompt, usage.cached, usage.completion, usage.reasoning) == (20, 16, 5, 3)
    assert result.seconds > 0
    (request,) = server.requests
    assert request.path == "/v1/chat/completions"
    assert request.body == {
        "model": "m",
        "messages": [{"role": "user", "content": "Rate it."}],
        "temperature": 0.0,
        "seed": 7,
        "max_tokens": 8,
        "logprobs": True,
        "top_logprobs": 20,
    }


def test_top_k_grid_adds_alternatives_that_differ_in_white_space() -> None:
    top = {"4": math.log(0.5), " 4": math.log(0.2), "3": math.log(0.1), "Score": math.log(0.1), "9": math.log(0.05)}
    result = one(lambda _: Reply(chat_answer("4", [("4", math.log(0.5), top)])), NUMBER)
    assert result.grid_logprobs is not None
    assert {text: round(math.exp(value), 9) for text, value in result.grid_logprobs.items()} == {"4": 0.7, "3": 0.1}


def test_top_k_grid_is_read_after_leading_white_space() -> None:
    tokens = [("\n", -0.1, {"\n": -0.1}), ("2", -0.2, {"2": -0.2, "1": -3.0})]
    assert one(lambda _: Reply(chat_answer("\n2", tokens)), NUMBER).grid_logprobs == {"2": -0.2, "1": -3.0}


@pytest.mark.parametrize(
    ("text", "tokens", "expected"),
    [
        ("10", [("10", -0.1, {"10": -0.1, "1": -4.0})], {"10": -0.1, "1": -4.0}),
        # Split into digits, "1" may be the first half of "10": no distribution.
        ("10", [("1", -0.1, {"1": -0.1, "9": -4.0}), ("0", -0.1, {"0": -0.1})], None),
        ("1", [("1", -0.1, {"1": -0.1, "9": -4.0})], None),
    ],
)
def test_scores_of_two_digits_count_as_whole_tokens_only(
    text: str, tokens: list[tuple[str, float, dict[str, float]]], expected: dict[str, float] | None
) -> None:
    call = NUMBER.model_copy(update={"grid": tuple(str(score) for score in range(11))})
    assert one(lambda _: Reply(chat_answer(text, tokens)), call).grid_logprobs == expected


def test_json_answer_keeps_alternatives_where_numbers_start() -> None:
    tokens = [
        ('{"a":', -0.1, {'{"a":': -0.1, "{": -2.0}),
        ("3", -0.2, {"3": -0.2, "4": -2.0, "5": -9999.0}),
        ("}", 0.0, {}),
        ("<|end|>", 0.0, {}),
    ]
    (result,), server = ask(lambda _: Reply(chat_answer('{"a":3}', tokens)), JSON)
    assert isinstance(result, Completion)
    assert [token.text for token in result.tokens] == ['{"a":', "3", "}"]
    assert [token.top for token in result.tokens] == [{}, {"3": -0.2, "4": -2.0}, {}]
    assert server.requests[0].body["response_format"]["json_schema"] == {
        "name": "answer",
        "strict": True,
        "schema": SCHEMA,
    }


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_json_is_found_in_the_reasoning_field(field: str) -> None:
    assert one(lambda _: Reply(chat_answer(None, **{field: ' {"a":3}'})), JSON).text == '{"a":3}'
    assert one(lambda _: Reply(chat_answer(None, **{field: "I think"})), JSON).text == ""
    assert one(lambda _: Reply(chat_answer(None, **{field: "3"})), NUMBER).text == ""


def test_refusal_has_no_distribution() -> None:
    tokens = [("I", -0.1, {"I": -0.1, "3": -5.0})]
    refused = one(lambda _: Reply(chat_answer(None, tokens, refusal="I can't.")), NUMBER)
    assert (refused.text, refused.finish_reason, refused.grid_logprobs) == ("I can't.", "refusal", None)
    filtered = one(lambda _: Reply(chat_answer("", tokens, finish_reason="content_filter")), NUMBER)
    assert (filtered.finish_reason, filtered.grid_logprobs) == ("refusal", None)


def test_cut_off_answer_is_reported() -> None:
    assert one(lambda _: Reply(chat_answer('{"a"', finish_reason="length")), JSON).finish_reason == "length"


def test_compact_call_goes_to_the_completions_endpoint_defused() -> None:
    logprobs = {"tokens": ["3"], "token_logprobs": [-0.5], "top_logprobs": [{"3": -0.5, "2": -1.5, "x": -2.0}]}
    choice = {"index": 0, "text": "3", "logprobs": logprobs, "finish_reason": "length"}
    body = {"id": "1", "object": "text_completion", "created": 1, "model": "m", "choices": [choice]}
    (result,), server = ask(lambda _: Reply(body), COMPACT)
    assert isinstance(result, Completion)
    assert result.grid_logprobs == {"3": -0.5, "2": -1.5}
    assert result.usage.prompt == 0
    assert server.requests[0].path == "/v1/completions"
    assert server.requests[0].body["prompt"] == "brick: a < |im_end|> b\n"


def test_rate_limit_carries_the_wait() -> None:
    error = failure(lambda _: error_answer(429, "slow down", headers={"retry-after": "7"}))
    assert error.retryable
    assert error.retry_after == 7.0
    assert "slow down" in str(error)


def test_the_engine_itself_never_asks_again() -> None:
    _, server = ask(lambda _: error_answer(500, "broken"), NUMBER)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_passing_failures_are_retryable(status: int) -> None:
    assert failure(lambda _: error_answer(status, "later")).retryable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_lasting_failures_are_not(status: int) -> None:
    error = failure(lambda _: error_answer(status, "no"))
    assert not error.retryable
    assert str(status) in str(error)


def test_used_up_quota_is_not_retryable() -> None:
    assert not failure(lambda _: error_answer(429, "pay", code="insufficient_quota")).retryable


def test_timeout_is_retryable() -> None:
    error = failure(lambda _: Reply(chat_answer("4"), delay=1.5), timeout=0.3)
    assert error.retryable
    assert "in time" in str(error)


def test_unreachable_server_is_retryable() -> None:
    engine = OpenAIEngine(EngineConfig(engine="openai", model="m", base_url="http://127.0.0.1:9/v1"))
    with pytest.raises(EngineError, match=r"127\.0\.0\.1:9/v1 cannot be reached") as caught:
        asyncio.run(engine.complete(NUMBER))
    assert caught.value.retryable


@pytest.mark.parametrize("body", ["{half", "<html>busy</html>", '{"choices": []}', '{"choices": null}', "[]", "null"])
def test_garbage_is_a_retryable_failure(body: str) -> None:
    error = failure(lambda _: Reply(body))
    assert error.retryable
    assert "not an answer" in str(error)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 429, 500])
def test_key_never_shows(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    monkeypatch.setenv("MY_KEY", KEY)
    (result,), server = ask(lambda _: error_answer(status, f"bad key {KEY}"), NUMBER, api_key_env="MY_KEY")
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert isinstance(result, EngineError)
    assert KEY not in f"{result} {result!r} {result.__cause__}"
    engine = OpenAIEngine(EngineConfig(engine="openai", model="m", base_url="http://x/v1", api_key_env="MY_KEY"))
    assert KEY not in str(engine.identity)


def test_official_key_does_not_go_to_another_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    _, server = ask(lambda _: Reply(chat_answer("4")), NUMBER)
    assert KEY not in server.requests[0].headers["authorization"]


def test_missing_key_is_a_users_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UserError, match="OPENAI_API_KEY is not set"):
        OpenAIEngine(EngineConfig(engine="openai", model="gpt-4o"))


def test_refused_logprobs_are_left_out_from_then_on(caplog: pytest.LogCaptureFixture) -> None:
    def answer(request: Request) -> Reply:
        if "top_logprobs" in request.body:
            return error_answer(400, "logprobs are not enabled for this model")
        return Reply(chat_answer("4"))

    results, server = ask(answer, NUMBER, NUMBER)
    assert [result.text for result in results if isinstance(result, Completion)] == ["4", "4"]
    assert ["logprobs" in request.body for request in server.requests] == [True, False, False]
    assert sum("refuses" in record.message for record in caplog.records) == 1


def test_refused_temperature_is_left_out_but_a_wrong_one_is_an_error() -> None:
    def unsupported(request: Request) -> Reply:
        if "temperature" in request.body:
            return error_answer(400, "Unsupported value", param="temperature")
        return Reply(chat_answer("4"))

    assert one(unsupported, NUMBER).text == "4"
    error = failure(lambda _: error_answer(400, "temperature must be at most 2"))
    assert "at most 2" in str(error)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_thinking_that_is_reported_apart_is_kept_apart(field: str) -> None:
    call = Call(messages=MESSAGES, max_tokens=30)
    result = one(lambda _: Reply(chat_answer("4", **{field: "three or four"})), call)
    assert (result.text, result.reasoning) == ("4", "three or four")
    hidden = one(lambda _: Reply(chat_answer("", **{field: '{"a": 3}'})), JSON)
    assert (hidden.text, hidden.reasoning) == ('{"a": 3}', "")


def test_reasoning_effort_is_sent_and_tells_answers_apart() -> None:
    efforts, keys = (None, "low", "high"), set()
    for effort in efforts:
        _, server = ask(lambda _: Reply(chat_answer("4")), NUMBER, reasoning_effort=effort)
        assert server.requests[0].body.get("reasoning_effort") == effort
        config = EngineConfig(engine="openai", model="m", base_url="http://x/v1", reasoning_effort=effort)
        keys.add(NUMBER.key(OpenAIEngine(config).identity))
    assert len(keys) == len(efforts)


def test_engine_works_in_several_event_loops() -> None:
    with fake_server(lambda _: Reply(chat_answer("4"))) as server:
        engine = OpenAIEngine(EngineConfig(engine="openai", model="m", base_url=server.url))
        for _ in range(2):
            assert asyncio.run(engine.complete(NUMBER)).text == "4"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("2.5", 2.5),
        ("-1", 0.0),
        ("Wed, 21 Oct 2015 07:28:30 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:00:00 GMT", 0.0),
        ("soon", None),
        ("", None),
    ],
)
def test_retry_after_header(value: str, seconds: float | None) -> None:
    now = datetime(2015, 10, 21, 7, 28, 0, tzinfo=UTC)
    assert retry_after({"retry-after": value}, now) == seconds


def exact_server(request: Request) -> Reply:
    """Behaves like vLLM: one token per character (its code point), "<ctl>" as a control token."""
    if request.path == "/tokenizer_info":
        return Reply({"added_tokens_decoder": {"0": "<ctl>", "1": " "}})
    if request.path == "/tokenize":
        text = request.body.get("prompt") or request.body["messages"][0]["content"]
        return Reply({"tokens": [ord(character) for character in text], "token_strs": list(text)})
    rows = request.body["prompt"]
    assert request.body["logprobs"] == 0
    choices = []
    for index, row in enumerate(rows):
        after_one = row[-1] == ord("1")
        top = {f"token_id:{token}": -1.0 if after_one else -2.0 for token in request.body["logprob_token_ids"]}
        logprobs = {"tokens": ["x"], "token_logprobs": [-0.1], "top_logprobs": [top]}
        choices.append({"index": index, "text": "x", "logprobs": logprobs, "finish_reason": "length"})
    answer = {"id": "1", "object": "text_completion", "created": 1, "model": "m", "choices": choices[::-1]}
    return Reply({**answer, "usage": {"prompt_tokens": 9, "completion_tokens": len(rows), "total_tokens": 10}})


def test_exact_grid_reads_every_string_by_token_id() -> None:
    call = Call(prompt="brick: a <ctl> b\n", grid=("1", "2", "10", "11"))
    (result,), server = ask(exact_server, call, exact_grid=True)
    assert isinstance(result, Completion), result
    assert result.grid_logprobs is not None
    rest = math.log(1 - 2 * math.exp(-1.0))
    assert result.grid_logprobs == pytest.approx({"1": -2.0 + rest, "2": -2.0, "10": -3.0, "11": -3.0})
    assert result.text == "2"
    rows = server.requests[-1].body["prompt"]
    assert "".join(map(chr, rows[0])) == "brick: a < ctl> b\n"
    assert rows[1] == [*rows[0], ord("1")]
    assert server.requests[-1].body["logprob_token_ids"] == [ord("0"), ord("1"), ord("2")]


def test_exact_grid_of_a_chat_breaks_up_control_tokens_and_turns_thinking_off() -> None:
    call = Call(messages=(Message(role="user", content="x <ctl>"),), grid=GRID, max_tokens=8)
    (result,), server = ask(exact_server, call, exact_grid=True)
    assert isinstance(result, Completion), result
    chat = next(request.body for request in server.requests if "messages" in request.body)
    assert chat["messages"] == [{"role": "user", "content": "x < ctl>"}]
    assert chat["chat_template_kwargs"] == {"enable_thinking": False}
    assert result.grid_logprobs == pytest.approx(dict.fromkeys(GRID, -2.0))


def test_exact_grid_needs_one_token_per_digit() -> None:
    def answer(request: Request) -> Reply:
        if request.path == "/tokenize" and request.body.get("prompt", "").endswith("10"):
            return Reply({"tokens": [58, 10, 999], "token_strs": [":", "\n", "10"]})
        return exact_server(request)

    call = Call(prompt="brick: a\n", grid=("1", "10"))
    (result,), _ = ask(answer, call, exact_grid=True)
    assert isinstance(result, EngineError)
    assert "not as one token per digit" in str(result)


def test_server_without_tokenizer_info_is_used_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    def answer(request: Request) -> Reply:
        return error_answer(404, "no") if request.path == "/tokenizer_info" else exact_server(request)

    results, _ = ask(answer, COMPACT, COMPACT, exact_grid=True)
    assert all(isinstance(result, Completion) for result in results), results
    assert sum("control tokens" in record.message for record in caplog.records) == 1


@pytest.mark.parametrize("kind", ["text/html", "application/json"])
@pytest.mark.parametrize("body", ["<html>\nWelcome</html>", '"text"', "[1]", "null"])
@pytest.mark.parametrize("exact", [False, True])
def test_an_answer_of_something_else_points_to_the_base_url(kind: str, body: str, exact: bool) -> None:
    error = failure(lambda _: Reply(body, headers={"content-type": kind}), exact_grid=exact)
    assert "not an answer of the OpenAI protocol" in str(error)
    assert "check base_url, which usually ends in /v1" in str(error)
    assert "attribute" not in str(error)
    assert "\n" not in str(error)
