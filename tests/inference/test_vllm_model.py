"""Engines that share one vLLM model: its start, its adapters, its batches and its end, on a stand-in for vLLM."""

import asyncio
import gc
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fake_vllm
import pytest
from fake_vllm import FakeVLLM
from tiny_model import write_adapter, write_model

from inference.adapters import read_adapter
from inference.engines.base import EngineConfig
from inference.engines.pool import EnginePool
from inference.engines.vllm import VLLMEngine
from inference.engines.vllm_model import Room
from inference.errors import UserError
from inference.judgement_file import JudgementFile
from inference.judges import JudgeConfig
from inference.records import Call, Completion, Sample
from inference.rubric import Rubric
from inference.runner import run_judges
from inference.store import Store

GRID = tuple("12345")
GRIDS = tuple(Call(prompt=f"use {number}\n", grid=GRID) for number in range(6))
TEXTS = tuple(Call(prompt=f"use {number}\n", max_tokens=4) for number in range(6))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def adapters(model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of ranks 4 and 12, in directories of the same name."""
    folder = tmp_path_factory.mktemp("adapters")
    first = write_adapter(model, folder / "a" / "adapter", seed=1, rank=4)
    return first, write_adapter(model, folder / "b" / "adapter", seed=2, rank=12)


@pytest.fixture
def vllm(monkeypatch: pytest.MonkeyPatch) -> FakeVLLM:
    gc.collect()  # engines of an earlier test are gone, and with them what they shared
    return fake_vllm.install(monkeypatch)


def config(model: Path, adapter: Path | None = None, **changes: Any) -> EngineConfig:
    settings = {"engine": "vllm", "model": str(model), "adapter": str(adapter) if adapter else None}
    return EngineConfig.model_validate({**settings, "max_model_len": 64, "batch_size": 4, **changes})


def ask(*asked: tuple[VLLMEngine, Sequence[Call]]) -> list[Completion]:
    """All calls side by side."""

    async def run() -> list[Completion]:
        return list(await asyncio.gather(*(engine.complete(call) for engine, calls in asked for call in calls)))

    return asyncio.run(run())


def test_two_adapters_are_served_by_one_model(vllm: FakeVLLM, model: Path, adapters: tuple[Path, Path]) -> None:
    judge, analyst = (VLLMEngine(config(model, adapter)) for adapter in adapters)
    assert not vllm.started  # nothing is loaded before the first call
    found = ask((analyst, TEXTS), (judge, GRIDS))
    (llm,) = vllm.running
    assert {key: llm.options[key] for key in ("enable_lora", "max_loras", "max_lora_rank")} == {
        "enable_lora": True,
        "max_loras": 2,
        "max_lora_rank": 16,
    }
    assert sorted(llm.numbers.values()) == [1, 2]
    assert set(llm.numbers) == {f"adapter@{read_adapter(adapter).digest}" for adapter in adapters}
    assert [completion.text for completion in found[:6]] == ["x"] * 6
    assert all(set(completion.grid_logprobs or {}) == set(GRID) for completion in found[6:])
    assert judge.identity != analyst.identity


def test_grids_and_texts_of_all_engines_stay_apart(vllm: FakeVLLM, model: Path, adapters: tuple[Path, Path]) -> None:
    engines = [VLLMEngine(config(model, adapter)) for adapter in (*adapters, None)]
    ask(*((engine, [*TEXTS, *GRIDS]) for engine in engines))
    (llm,) = vllm.started
    assert {kind for kind, _ in llm.batches} == {"grid", "text"}
    assert len({name for _, name in llm.batches}) == 3


def test_each_engine_gets_the_answers_of_its_own_adapter(
    vllm: FakeVLLM, model: Path, adapters: tuple[Path, Path]
) -> None:
    engines = [VLLMEngine(config(model, adapter)) for adapter in (*adapters, None)]
    together = ask(*((engine, GRIDS) for engine in engines))
    assert len(vllm.started) == 1
    alone = [completion for engine in engines for completion in ask((engine, GRIDS))]
    assert together == [
        one.model_copy(update={"seconds": other.seconds}) for one, other in zip(alone, together, strict=True)
    ]
    assert len({tuple((completion.grid_logprobs or {}).values()) for completion in together[::6]}) == 3


def test_nothing_is_paid_for_adapters_without_any(vllm: FakeVLLM, model: Path) -> None:
    ask((VLLMEngine(config(model)), GRIDS), (VLLMEngine(config(model, batch_size=8)), GRIDS))
    (llm,) = vllm.started
    assert not {"enable_lora", "max_loras", "max_lora_rank"} & set(llm.options)


def test_the_largest_settings_hold_for_all(vllm: FakeVLLM, model: Path, adapters: tuple[Path, Path]) -> None:
    long = VLLMEngine(config(model, adapters[0], max_model_len=128))
    wide = VLLMEngine(config(model, adapters[1], batch_size=9))
    ask((wide, GRIDS), (long, GRIDS))
    (llm,) = vllm.started
    assert (llm.options["max_model_len"], llm.options["max_num_seqs"]) == (129, 9)


def test_number_formats_and_models_are_not_shared(vllm: FakeVLLM, model: Path, tmp_path: Path) -> None:
    engines = [VLLMEngine(config(folder)) for folder in (model, write_model(tmp_path / "other", seed=1))]
    engines.append(VLLMEngine(config(model, dtype="bfloat16")))
    ask(*((engine, GRIDS[:1]) for engine in engines))
    assert len(vllm.running) == 3


def test_the_last_engine_ends_the_model(vllm: FakeVLLM, model: Path, adapters: tuple[Path, Path]) -> None:
    first, second = (VLLMEngine(config(model, adapter)) for adapter in adapters)
    ask((first, GRIDS), (second, GRIDS))
    asyncio.run(first.close())
    assert len(vllm.running) == 1
    ask((second, GRIDS))
    asyncio.run(second.close())
    assert (len(vllm.started), vllm.running) == (1, [])


def test_an_engine_that_is_lost_does_not_keep_the_model(
    vllm: FakeVLLM, model: Path, adapters: tuple[Path, Path]
) -> None:
    lost, kept = (VLLMEngine(config(model, adapter)) for adapter in adapters)
    ask((lost, GRIDS), (kept, GRIDS))
    del lost
    gc.collect()
    asyncio.run(kept.close())
    assert not vllm.running


def test_closing_one_engine_waits_for_no_other(vllm: FakeVLLM, model: Path, adapters: tuple[Path, Path]) -> None:
    first, second = (VLLMEngine(config(model, adapter)) for adapter in adapters)

    async def run() -> list[Completion]:
        work = asyncio.gather(*map(second.complete, GRIDS * 3))
        await asyncio.sleep(0)
        await first.close()
        return list(await work)

    assert len(asyncio.run(run())) == len(GRIDS) * 3
    assert len(vllm.running) == 1


def test_who_joins_later_takes_turns_or_gets_a_new_start(
    vllm: FakeVLLM, model: Path, adapters: tuple[Path, Path]
) -> None:
    small, large = adapters
    base = VLLMEngine(config(model))
    ask((base, GRIDS))
    first = VLLMEngine(config(model, large))
    ask((first, GRIDS))
    assert (len(vllm.started), len(vllm.running)) == (2, 1)
    # There is room for its rank: the two take turns.
    ask((VLLMEngine(config(model, small)), GRIDS), (base, GRIDS))
    assert (len(vllm.started), vllm.running[0].options["max_loras"]) == (2, 1)


def test_a_released_engine_can_be_asked_again(vllm: FakeVLLM, model: Path) -> None:
    engine = VLLMEngine(config(model))
    for started in (1, 2):
        engine.compute(GRIDS)
        engine.release()
        assert (len(vllm.started), vllm.running) == (started, [])


def test_a_failed_start_fails_the_calls_and_is_tried_again(
    vllm: FakeVLLM, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = VLLMEngine(config(model))
    with monkeypatch.context() as broken:
        broken.setattr(sys.modules["vllm"], "LLM", lambda **_: 1 / 0)
        (found,) = asyncio.run(_gather(engine, GRIDS[:1]))
    assert "ZeroDivisionError" in str(found)
    assert not vllm.started
    (found,) = asyncio.run(_gather(engine, GRIDS[:1]))
    assert found.grid_logprobs


async def _gather(engine: VLLMEngine, calls: Sequence[Call]) -> list[Any]:
    return list(await asyncio.gather(*map(engine.complete, calls), return_exceptions=True))


def test_threads_take_turns(vllm: FakeVLLM, model: Path, adapters: tuple[Path, Path]) -> None:
    engines = [VLLMEngine(config(model, adapter)) for adapter in (*adapters, None) * 2]
    failed: list[BaseException] = []

    def work(engine: VLLMEngine) -> None:
        try:
            for _ in range(5):
                engine.compute([*GRIDS, *TEXTS])
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(engine,)) for engine in engines]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert len(vllm.started) == 1


def test_an_adapter_beyond_the_largest_rank_is_refused_at_once(
    vllm: FakeVLLM, model: Path, adapters: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    huge = read_adapter(adapters[0]).model_copy(update={"rank": 513})
    monkeypatch.setattr("inference.engines.local.read_adapter", lambda _: huge)
    with pytest.raises(UserError, match="rank 513 is more than vLLM serves"):
        VLLMEngine(config(model, adapters[0]))
    assert not vllm.started


def test_room_for_fewer_adapters_is_room_enough() -> None:
    started = Room(context=65, batch=4, rank=16, adapters=1)
    assert started.holds(Room(context=65, batch=4, rank=8, adapters=3))
    for change in ({"context": 66}, {"batch": 5}, {"rank": 32}):
        assert not started.holds(Room(**{**vars(started), **change}))


def test_all_judges_of_a_run_share_one_start(
    vllm: FakeVLLM, model: Path, adapters: tuple[Path, Path], aut_rubric: Rubric, tmp_path: Path
) -> None:
    judges = [
        JudgeConfig.model_validate({**config(model, adapter).model_dump(), "id": name, "method": "compact"})
        for name, adapter in zip(("first", "second", "base"), (*adapters, None), strict=True)
    ]
    samples = [Sample(id=str(number), scenario="rope", responses={"use": f"use {number}"}) for number in range(5)]
    with Store(tmp_path / "calls.sqlite") as store, JudgementFile(tmp_path / "judgements.jsonl") as sink:
        asyncio.run(run_judges(samples, judges, aut_rubric, store, sink, quiet=True))
        found = list(sink.read())
    (llm,) = vllm.started
    assert llm.ended
    assert llm.options["max_loras"] == 2
    assert [name for _, name in llm.batches][-1] is None  # judge by judge, the one without an adapter last
    assert all(judgement.scores[0].value is not None for judgement in found)
    # Equal prompts, so the keys differ by the engine's identity alone.
    assert len({key for judgement in found for key in judgement.calls}) == 15


def test_the_pool_closes_what_is_left(vllm: FakeVLLM, model: Path, adapters: tuple[Path, Path]) -> None:
    pool = EnginePool(VLLMEngine)
    configs = [config(model, adapter) for adapter in adapters]

    async def run() -> None:
        for one in configs:
            await pool.get(one).complete(GRIDS[0])
        await pool.keep(configs[1:])
        assert len(vllm.running) == 1
        await pool.keep(())

    asyncio.run(run())
    assert not vllm.running
