"""The runner on scripted engines: order, limits, retries, faults and stops."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from watched import Watched

from inference import asking
from inference.engines.base import EngineConfig, EngineError
from inference.errors import UserError
from inference.judgement_file import JudgementFile
from inference.judges import JudgeConfig
from inference.methods import METHODS, Answers, Asks, Settings
from inference.records import Call, Completion, Judgement, Sample
from inference.rubric import Rubric
from inference.runner import JudgeRun, run_judges
from inference.store import Store

MakeSamples = Callable[[int], list[Sample]]
MakeJudge = Callable[..., JudgeConfig]
GOOD = Completion(text="3", grid_logprobs={"3": 0.0})


class Place:
    """A run in a folder; `go` starts it, each time with a new engine."""

    def __init__(self, folder: Path, rubric: Rubric) -> None:
        self.folder, self.rubric = folder, rubric
        self.engines: list[Watched] = []

    def go(
        self, samples: Sequence[Sample], *judges: JudgeConfig, answer: Callable[[Call], Completion] | None = None
    ) -> list[JudgeRun]:
        def build(config: EngineConfig) -> Watched:
            self.engines.append(Watched(config, answer))
            return self.engines[-1]

        with Store(self.folder / "calls.sqlite") as store, JudgementFile(self.folder / "judgements.jsonl") as sink:
            return asyncio.run(run_judges(samples, judges, self.rubric, store, sink, quiet=True, build=build))

    def read(self) -> list[Judgement]:
        with JudgementFile(self.folder / "judgements.jsonl") as file:
            return list(file.read())

    def reasons(self) -> list[str | None]:
        return [judgement.scores[0].unscored for judgement in self.read()]


@pytest.fixture
def place(tmp_path: Path, aut_rubric: Rubric, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(asking, "FIRST_WAIT", 0.001)
    return Place(tmp_path, aut_rubric)


def test_lines_follow_the_samples_and_calls_follow_the_scenarios(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge
) -> None:
    samples = make_samples(9)
    place.go(samples, make_judge(concurrency=1), make_judge(id="second", repeats=2))
    assert [(j.judge, j.sample_id, j.repeat) for j in place.read()] == [
        *(("judge", sample.id, 0) for sample in samples),
        *(("second", sample.id, repeat) for sample in samples for repeat in (0, 1)),
    ]
    objects = [(call.prompt or "").split(":")[0] for call in place.engines[0].calls[:9]]
    assert objects == ["rope"] * 3 + ["tin"] * 3 + ["shoe"] * 3
    assert all(engine.closed for engine in place.engines)


def test_a_judgement_names_what_it_comes_from(place: Place, make_samples: MakeSamples, make_judge: MakeJudge) -> None:
    place.go(make_samples(1), make_judge())
    (judgement,) = place.read()
    assert judgement.rubric == f"aut@{place.rubric.digest}"
    assert judgement.method == "compact"
    (call,) = place.engines[0].calls
    assert judgement.calls == (call.key(place.engines[0].identity),)


def test_the_limit_of_calls_in_flight_is_used_and_kept(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge
) -> None:
    place.go(make_samples(40), make_judge(model="scripted:0.005", concurrency=7))
    assert place.engines[0].most == 7


def test_equal_calls_side_by_side_are_sent_once(place: Place, make_judge: MakeJudge) -> None:
    samples = [Sample(id=str(i), scenario="rope", responses={"use": "swing" + " " * i}) for i in range(8)]
    (run,) = place.go(samples, make_judge(model="scripted:0.005"))
    assert (run.sent, run.new, len(place.read())) == (1, 8, 8)


def test_finished_judgements_are_skipped_without_building_an_engine(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge
) -> None:
    place.go(make_samples(5), make_judge())
    (run,) = place.go(make_samples(5), make_judge())
    assert (run.new, run.sent, run.judgements, len(place.engines)) == (0, 0, 5, 1)


def failing(times: int, error: EngineError) -> Callable[[Call], Completion]:
    """Each call fails `times` times, then is answered."""
    seen: dict[str, int] = {}

    def answer(call: Call) -> Completion:
        key = call.key({})
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= times:
            raise error
        return GOOD

    return answer


def test_passing_errors_are_retried_up_to_the_bound(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge
) -> None:
    busy = EngineError("busy", retryable=True)
    (run,) = place.go(make_samples(3), make_judge(max_retries=2), answer=failing(2, busy))
    assert (run.sent, run.failed) == (9, 0)
    assert place.reasons() == [None] * 3


def test_lasting_errors_are_not_retried(place: Place, make_samples: MakeSamples, make_judge: MakeJudge) -> None:
    def answer(call: Call) -> Completion:
        if "numbered 1" in (call.prompt or ""):
            raise EngineError("the prompt\nis too long")
        return GOOD

    (run,) = place.go(make_samples(3), make_judge(), answer=answer)
    assert (run.sent, run.failed) == (3, 1)
    assert place.reasons() == [None, "engine: the prompt is too long", None]


def test_a_restart_asks_failed_calls_again_and_ends_with_the_same_bytes(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge, tmp_path: Path
) -> None:
    def answer(call: Call) -> Completion:
        if "numbered 3" in (call.prompt or ""):
            raise EngineError("fault")
        return GOOD

    place.go(make_samples(6), make_judge(), answer=answer)
    kept = place.reasons()
    place.go(make_samples(6), make_judge(), answer=answer)
    assert place.reasons() == kept == [None] * 3 + ["engine: fault"] + [None] * 2
    (run,) = place.go(make_samples(6), make_judge(), answer=lambda _: GOOD)
    assert run.sent == 1
    smooth = Place(tmp_path / "smooth", place.rubric)
    smooth.folder.mkdir()
    smooth.go(make_samples(6), make_judge(), answer=lambda _: GOOD)
    files = [folder / "judgements.jsonl" for folder in (place.folder, smooth.folder)]
    assert files[0].read_bytes() == files[1].read_bytes()


def state(attempt: int, error: EngineError) -> SimpleNamespace:
    return SimpleNamespace(attempt_number=attempt, outcome=SimpleNamespace(exception=lambda: error))


def test_waits_grow_are_bounded_and_follow_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.uniform", lambda _low, high: high)
    waits = [asking.seconds_to_wait(state(n, EngineError("busy"))) for n in (1, 2, 3, 4, 9)]  # type: ignore[arg-type]
    assert waits == [1.0, 2.0, 4.0, 8.0, asking.LONGEST_WAIT]
    asked = [asking.seconds_to_wait(state(1, EngineError("busy", retry_after=s))) for s in (0.1, 7.5, 1e6)]  # type: ignore[arg-type]
    assert asked == [1.0, 7.5, asking.LONGEST_ASKED_WAIT]


def test_retry_after_is_waited_for(place: Place, make_samples: MakeSamples, make_judge: MakeJudge) -> None:
    error = EngineError("busy", retryable=True, retry_after=0.2)
    (run,) = place.go(make_samples(1), make_judge(), answer=failing(1, error))
    assert run.sent == 2
    assert run.seconds >= 0.2


def test_a_fault_in_a_method_stays_with_its_sample(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    compact = METHODS["compact"]

    async def faulty(rubric: Rubric, sample: Sample, asks: Asks, settings: Settings) -> Answers:
        if sample.id == "s002":
            raise ZeroDivisionError("division by zero")
        return await compact(rubric, sample, asks, settings)

    monkeypatch.setitem(METHODS, "compact", faulty)
    (run,) = place.go(make_samples(5), make_judge())
    assert run.failed == 1
    assert place.reasons() == [None, None, "method: ZeroDivisionError: division by zero", None, None]


def test_a_fault_in_an_engine_stays_with_its_sample(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge
) -> None:
    def answer(call: Call) -> Completion:
        if "numbered 0" in (call.prompt or ""):
            raise RuntimeError("out of memory")
        return GOOD

    place.go(make_samples(3), make_judge(), answer=answer)
    assert place.reasons() == ["engine: RuntimeError: out of memory", None, None]


def unreachable(_: Call) -> Completion:
    raise EngineError("cannot connect to http://127.0.0.1:9/v1", retryable=True)


@pytest.mark.parametrize("count", [3, 300])
def test_an_unreachable_server_stops_the_run_and_leaves_earlier_results(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge, count: int
) -> None:
    place.go(make_samples(count), make_judge())
    before = (place.folder / "judgements.jsonl").read_bytes()
    second = make_judge(id="second", model="gone", max_retries=1, concurrency=4)
    with pytest.raises(UserError, match=r"judge second: .*cannot connect to http://127\.0\.0\.1:9/v1"):
        place.go(make_samples(count), make_judge(), second, answer=unreachable)
    assert (place.folder / "judgements.jsonl").read_bytes() == before
    assert len(place.engines[-1].calls) <= 2 * (asking.OUTAGE + 4)
    assert place.engines[-1].closed
    place.go(make_samples(count), make_judge(), second)
    assert len(place.read()) == 2 * count


def test_a_refused_key_stops_the_run_early(place: Place, make_samples: MakeSamples, make_judge: MakeJudge) -> None:
    def refuse(_: Call) -> Completion:
        raise EngineError("401: the key is wrong")

    with pytest.raises(UserError, match="the key is wrong"):
        place.go(make_samples(500), make_judge(), answer=refuse)
    assert len(place.engines[0].calls) <= asking.HOPELESS + 16
    assert place.read() == []


def test_an_outage_in_the_middle_stops_the_run_and_a_restart_goes_on(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge
) -> None:
    answered = 0

    def dies(call: Call) -> Completion:
        nonlocal answered
        answered += 1
        return GOOD if answered <= 100 else unreachable(call)

    with pytest.raises(UserError, match="start the same command again"):
        place.go(make_samples(300), make_judge(max_retries=0, concurrency=4), answer=dies)
    (run,) = place.go(make_samples(300), make_judge(max_retries=0, concurrency=4), answer=lambda _: GOOD)
    assert run.sent == 200
    assert place.reasons() == [None] * 300


def test_no_api_key_gets_into_the_file(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "sk-secret-1234")

    def leak(call: Call) -> Completion:
        if "numbered 0" in (call.prompt or ""):
            raise EngineError("refused: sk-secret-1234 is no good key")
        return GOOD

    place.go(make_samples(2), make_judge(api_key_env="MY_KEY"), answer=leak)
    assert place.reasons() == ["engine: refused: *** is no good key", None]


def test_ids_have_to_be_unique(place: Place, make_samples: MakeSamples, make_judge: MakeJudge) -> None:
    with pytest.raises(UserError, match="two judges have the same id"):
        place.go(make_samples(1), make_judge(), make_judge())
    with pytest.raises(UserError, match=r"more than once: \['s000'\]"):
        place.go([*make_samples(2), *make_samples(1)], make_judge())


def test_a_complaint_is_shown_once_and_a_second_bad_answer_stays_unscored(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge
) -> None:
    (run,) = place.go(make_samples(1), make_judge(method="direct"), answer=lambda _: Completion(text="I think 4"))
    assert (run.sent, run.failed) == (2, 0)
    first, second = place.engines[0].calls
    assert first.messages is not None
    assert second.messages is not None
    assert second.messages[:2] == first.messages
    assert "the answer is not one number: 'I think 4'" in second.messages[-1].content
    assert place.reasons() == ["the answer is not one number: 'I think 4'"]
    assert len(place.read()[0].calls) == 2


def test_a_judge_whose_method_always_fails_ends_in_an_error_and_keeps_the_answers(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    compact = METHODS["compact"]

    async def faulty(rubric: Rubric, sample: Sample, asks: Asks, settings: Settings) -> Answers:
        await compact(rubric, sample, asks, settings)
        raise ZeroDivisionError("division by zero")

    blank = Sample(id="blank", scenario="rope", responses={"use": " "})
    monkeypatch.setitem(METHODS, "compact", faulty)
    for _ in range(2):
        with pytest.raises(UserError, match=r"judge judge: all of its 5 judgements failed \(method: ZeroDivisionError"):
            place.go([*make_samples(5), blank], make_judge())
    monkeypatch.setitem(METHODS, "compact", compact)
    (run,) = place.go([*make_samples(5), blank], make_judge())
    assert (run.sent, run.new, run.failed) == (0, 5, 0)


def test_empty_responses_alone_are_no_failure(place: Place, make_judge: MakeJudge) -> None:
    (run,) = place.go([Sample(id="blank", scenario="rope", responses={"use": " "})], make_judge())
    assert (run.sent, run.failed) == (0, 0)


def test_a_damaged_answer_in_the_store_stops_the_run_and_writes_nothing(
    place: Place, make_samples: MakeSamples, make_judge: MakeJudge
) -> None:
    place.go(make_samples(3), make_judge())
    with sqlite3.connect(place.folder / "calls.sqlite") as connection:
        connection.execute("UPDATE calls SET completion = '{'")
    connection.close()
    (place.folder / "judgements.jsonl").unlink()
    with pytest.raises(UserError, match=r"calls\.sqlite: the answer of call .* is damaged; move the file away"):
        place.go(make_samples(3), make_judge())
    assert place.read() == []
