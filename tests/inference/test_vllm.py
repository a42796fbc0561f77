"""Real vLLM with SmolLM2 and a random adapter: the server behind the OpenAI engine, and the offline engine."""

import asyncio
import json
import multiprocessing
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tiny_model import write_adapter
from vllm_server import Served, served

from inference import check_adapter
from inference.answers import read_scores
from inference.engines import EngineConfig
from inference.engines.base import Engine, EngineError
from inference.engines.hf import HFEngine
from inference.engines.openai import OpenAIEngine
from inference.engines.vllm import VLLMEngine
from inference.records import Call, Completion, Message
from inference.rubric import Rubric
from inference.schemas import scores_schema
from inference.scoring import read_number_answer

__all__ = ["served"]
pytestmark = pytest.mark.slow

GRID = tuple("12345")
LONG_GRID = tuple(str(score) for score in range(1, 17))
GRID_CALLS = (
    Call(prompt="brick: build a small dam\n", grid=GRID),
    Call(prompt="rope: x\n", grid=GRID),
    Call(prompt="tin can: <|im_end|> <repo_name> <|im_start|>system\n", grid=GRID),
    Call(prompt="shoe: plant a cactus in it\n", grid=LONG_GRID, max_tokens=2),
    Call(
        messages=(Message(role="user", content="Rate a brick as a <repo_name> from 1 to 5."),), grid=GRID, max_tokens=8
    ),
)
TOLERANCE = check_adapter.TOLERANCE["float32"]


def answers(engine: Engine, calls: Sequence[Call]) -> list[Completion]:
    """Completions of `calls`, asked side by side."""

    async def run() -> list[Completion]:
        try:
            return list(await asyncio.gather(*map(engine.complete, calls)))
        finally:
            if isinstance(engine, OpenAIEngine):
                await engine.close()

    return asyncio.run(run())


def remote(served: Served, model: str) -> OpenAIEngine:
    settings = {"engine": "openai", "model": model, "base_url": served.url, "exact_grid": True}
    return OpenAIEngine(EngineConfig.model_validate(settings))


def local(kind: str, served: Served, adapter: Path | None) -> EngineConfig:
    settings = {"engine": kind, "model": str(served.model), "adapter": str(adapter) if adapter else None}
    return EngineConfig.model_validate({**settings, "max_model_len": 512})


@pytest.fixture(scope="module")
def expected(served: Served) -> list[Completion]:
    """What PEFT computes for the grid calls with the adapter, unmerged."""
    return answers(HFEngine(local("hf", served, served.adapter), merge=False), GRID_CALLS)


@pytest.fixture(scope="module")
def engines(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[VLLMEngine]]:
    """On one running model: with the adapter of the server, with another one of a larger rank, and without any."""
    other = write_adapter(served.model, tmp_path_factory.mktemp("other") / "adapter", seed=2, rank=12, size=0.3)
    found = [VLLMEngine(local("vllm", served, adapter)) for adapter in (served.adapter, other, None)]
    yield found
    for engine in found:
        engine.release()


@pytest.fixture(scope="module")
def offline(engines: list[VLLMEngine]) -> VLLMEngine:
    return engines[0]


def assert_close(found: Sequence[Completion], expected: Sequence[Completion]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.grid_logprobs == pytest.approx(other.grid_logprobs, abs=TOLERANCE)
        assert one.text == other.text


def assert_valid_json(rubric: Rubric, completions: Sequence[Completion]) -> None:
    for completion in completions:
        assert all(score.unscored is None for score in read_scores(rubric.answered, completion)), completion.text
        assert completion.text == json.dumps(json.loads(completion.text), separators=(",", ":"))
        assert any(token.top for token in completion.tokens)


def json_calls(rubric: Rubric) -> list[Call]:
    schema = scores_schema(rubric.answered)
    texts = ("Rate this plan.", 'Rate: {"x": 1}', "Say hello.")
    return [Call(messages=(Message(role="user", content=t),), json_schema=schema, max_tokens=96) for t in texts]


def test_served_adapter_equals_peft(served: Served, expected: list[Completion]) -> None:
    assert_close(answers(remote(served, served.adapter_name), GRID_CALLS), expected)


def test_served_base_equals_transformers_and_differs_from_the_adapter(
    served: Served, expected: list[Completion]
) -> None:
    base = answers(remote(served, served.base_name), GRID_CALLS)
    assert_close(base, answers(HFEngine(local("hf", served, None)), GRID_CALLS))
    for plain, adapted in zip(base, expected, strict=True):
        assert plain.grid_logprobs is not None
        assert adapted.grid_logprobs is not None
        change = max(abs(plain.grid_logprobs[text] - adapted.grid_logprobs[text]) for text in plain.grid_logprobs)
        assert change > check_adapter.CHANGE_FACTOR * TOLERANCE


def test_json_and_grids_mixed_in_one_batch_both_stay_whole(
    served: Served, plan_rubric: Rubric, expected: list[Completion]
) -> None:
    structured = json_calls(plan_rubric)
    mixed = answers(remote(served, served.adapter_name), [*structured, *GRID_CALLS])
    assert_valid_json(plan_rubric, mixed[: len(structured)])
    assert_close(mixed[len(structured) :], expected)


def test_prefix_cache_is_used_and_reported(served: Served) -> None:
    call = Call(prompt="brick: " + "a very long use " * 60 + "\n", grid=GRID)
    first = answers(remote(served, served.adapter_name), [call])[0]
    second = answers(remote(served, served.adapter_name), [call])[0]
    assert second.usage.cached > first.usage.cached
    assert second.grid_logprobs == pytest.approx(first.grid_logprobs, abs=TOLERANCE)


def test_top_k_of_an_answer_that_is_one_score_is_a_distribution(served: Served, aut_rubric: Rubric) -> None:
    engine = OpenAIEngine(EngineConfig(engine="openai", model=served.base_name, base_url=served.url))
    text = "Rate the use of a brick as a doorstop from 1 to 5. Answer with the number alone."
    calls = [Call(messages=(Message(role="user", content=text),), grid=GRID, max_tokens=tokens) for tokens in (1, 8)]
    score, sentence = answers(engine, calls)
    step, dimension = aut_rubric.scored[0]
    assert read_number_answer(step.name, dimension, score).off_grid is not None
    # SmolLM2 goes on after the digit ("1. The use of …"), and a number at the start of a sentence is no score.
    assert sentence.text.strip() not in GRID
    assert read_number_answer(step.name, dimension, sentence).unscored is not None


def test_unknown_model_is_named(served: Served) -> None:
    with pytest.raises(EngineError, match=r"no model nobody \(404\)"):
        answers(OpenAIEngine(EngineConfig(engine="openai", model="nobody", base_url=served.url)), GRID_CALLS[:1])


def test_offline_engine_equals_peft_and_enforces_schemas(
    offline: VLLMEngine, plan_rubric: Rubric, expected: list[Completion]
) -> None:
    structured = json_calls(plan_rubric)
    free = Call(messages=(Message(role="user", content="Say hello."),), max_tokens=6)
    mixed = answers(offline, [*GRID_CALLS, *structured, free])
    assert_close(mixed[: len(GRID_CALLS)], expected)
    assert_valid_json(plan_rubric, mixed[len(GRID_CALLS) : -1])
    assert mixed[-1].usage.completion <= 6


def test_adapters_on_one_running_model_equal_peft_side_by_side(served: Served, engines: list[VLLMEngine]) -> None:
    async def ask() -> list[Completion]:
        return list(await asyncio.gather(*(engine.complete(call) for call in GRID_CALLS for engine in engines)))

    before = set(multiprocessing.active_children())
    found = asyncio.run(ask())
    assert len(set(multiprocessing.active_children()) - before) <= 1
    for place, engine in enumerate(engines):
        adapter = engine.adapter.path if engine.adapter else None
        assert_close(
            found[place :: len(engines)], answers(HFEngine(local("hf", served, adapter), merge=False), GRID_CALLS)
        )


def test_check_adapter_passes_on_the_running_model(
    served: Served, offline: VLLMEngine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    offline.compute(GRID_CALLS[:1])
    running = set(multiprocessing.active_children())
    config = tmp_path / "serve.yaml"
    config.write_text(f"model: {served.model}\nadapters: {{random: {served.adapter}}}\nmax_model_len: 512\n")
    assert check_adapter.check_adapter(config) == 0
    printed = capsys.readouterr().out
    assert "(a) keys: all match, 210 modules" in printed
    assert printed.count(": ok") == 2
    assert (
        set(multiprocessing.active_children()) == running
    )  # it has shared the model of this module, and left it running
