"""The store of finished calls and the file of judgements."""

import asyncio
import json
import math
import sqlite3
import time
from pathlib import Path

import pytest

from inference.errors import UserError
from inference.judgement_file import JudgementFile, job_key
from inference.records import Call, Completion, Judgement, Score, Token, Usage
from inference.store import Store, holds_calls

COMPLETION = Completion(
    text="½ \ud83d",
    grid_logprobs={"1": -math.inf, "2": -0.1, "3": math.log(1 / 3)},
    tokens=(Token(text="½", logprob=-0.25, top={"½": -0.25}),),
    usage=Usage(prompt=7, completion=1),
    seconds=0.125,
)


def put(store: Store, key: str, completion: Completion = COMPLETION) -> None:
    asyncio.run(store.put(key, completion, 1.0, 2.0))


def test_a_completion_comes_back_exactly_also_from_another_process_life(tmp_path: Path) -> None:
    with Store(tmp_path / "calls.sqlite") as store:
        put(store, "k")
        assert store.get("k") == COMPLETION
        assert store.get("other") is None
    with Store(tmp_path / "calls.sqlite") as store:
        assert store.get("k") == COMPLETION
        (call,) = store.calls()
        assert (call.key, call.started, call.finished, call.completion) == ("k", 1.0, 2.0, COMPLETION)


def test_a_finished_call_is_never_overwritten(tmp_path: Path) -> None:
    with Store(tmp_path / "calls.sqlite") as store:
        put(store, "k")
        put(store, "k", Completion(text="later"))
        assert store.get("k") == COMPLETION
        assert len(store) == 1


def test_side_by_side_puts_are_all_there_when_they_return_and_fast(tmp_path: Path) -> None:
    count = 2000

    async def one(store: Store, index: int) -> None:
        await store.put(f"k{index}", Completion(text=str(index)), 0.0, 1.0)
        found = store.get(f"k{index}")
        assert found is not None
        assert found.text == str(index)

    async def work(store: Store) -> None:
        for first in range(0, count, 100):
            await asyncio.gather(*(one(store, index) for index in range(first, first + 100)))

    with Store(tmp_path / "calls.sqlite") as store:
        started = time.monotonic()
        asyncio.run(work(store))
        assert len(store) == count
        assert count / (time.monotonic() - started) > 1000


def test_foreign_and_damaged_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"not a database, but long enough to have a header" * 50)
    with pytest.raises(UserError, match="cannot be used"):
        Store(damaged)
    assert damaged.read_bytes().startswith(b"not a database")
    foreign = tmp_path / "foreign.sqlite"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE theirs (x)")
    connection.commit()
    connection.close()
    before = foreign.read_bytes()
    with pytest.raises(UserError, match="another program"):
        Store(foreign)
    assert foreign.read_bytes() == before
    with pytest.raises(UserError, match="cannot be used"):
        Store(tmp_path / "no" / "such" / "folder.sqlite")


def test_a_failed_write_reaches_every_caller(tmp_path: Path) -> None:
    with Store(tmp_path / "calls.sqlite") as store:
        blocker = sqlite3.connect(tmp_path / "calls.sqlite", isolation_level=None)
        blocker.execute("DROP TABLE calls")
        blocker.close()

        async def both() -> list[object]:
            return list(
                await asyncio.gather(
                    *(store.put(key, COMPLETION, 0.0, 1.0) for key in ("a", "b")), return_exceptions=True
                )
            )

        assert [type(result) for result in asyncio.run(both())] == [UserError, UserError]


def test_the_key_covers_everything_that_determines_the_answer() -> None:
    engine = {"engine": "hf", "model": "m"}
    call = Call(prompt="a", grid=("1", "2"))
    changes: list[dict[str, object]] = [
        {"prompt": "b"},
        {"prompt": "\ud83d"},
        {"grid": ("1",)},
        {"grid": None},
        {"json_schema": {"type": "object"}},
        {"max_tokens": 2},
        {"temperature": 0.5},
        {"seed": 1},
        {"repeat": 1},
    ]
    keys = {call.model_copy(update=change).key(engine) for change in changes}
    assert len(keys | {call.key(engine), call.key({**engine, "adapter": "x"})}) == len(changes) + 2
    assert call.key(engine) == Call(prompt="a", grid=("1", "2")).key(dict(reversed(engine.items())))


def judgement(number: int, reason: str | None = None) -> Judgement:
    value = None if reason else 3.0
    score = Score(step="use", dimension="originality", value=value, top=value, unscored=reason)
    return Judgement(sample_id=f"s{number}", judge="j", method="compact", rubric="r@0", scores=(score,))


JOBS = [job_key(judgement(number)) for number in range(4)]


def test_the_file_knows_what_is_missing_failed_or_bad(tmp_path: Path) -> None:
    reasons = [None, "engine: gone", "the answer is not one number: 'ö'"]
    with JudgementFile(tmp_path / "j.jsonl") as file:
        assert file.pending(JOBS) == [0, 1, 2, 3]
        file.append([judgement(number, reason) for number, reason in enumerate(reasons)])
        assert file.pending(JOBS) == [1, 3]  # a bad answer is a result, a failed engine is not
    with JudgementFile(tmp_path / "j.jsonl") as file:
        before = file.path.read_bytes()
        file.replace(1, judgement(1))
        assert file.path.read_bytes() == before
        file.settle()
        file.append([judgement(3)])
        assert file.pending(JOBS) == []
        assert [found.sample_id for found in file.read()] == ["s0", "s1", "s2", "s3"]


@pytest.mark.parametrize("torn", [b"{", b'{"sample_id": "s1"', b"\x00" * 10, "ö".encode()[:1]])
def test_a_torn_last_line_is_cut(tmp_path: Path, torn: bytes) -> None:
    path = tmp_path / "j.jsonl"
    with JudgementFile(path) as file:
        file.append([judgement(0)])
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    with JudgementFile(path) as file:
        assert file.length == 1
    assert path.read_bytes() == whole


def test_damage_inside_and_lines_of_other_runs_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with JudgementFile(path) as file:
        file.append([judgement(0), judgement(2)])
        with pytest.raises(UserError, match=r"line 2 \(j, s2\) is not what this run puts there"):
            file.pending(JOBS)
    path.write_bytes(b"garbage\n" + path.read_bytes())
    with pytest.raises(UserError, match="line 1 is damaged; delete this file"):
        JudgementFile(path)


@pytest.mark.parametrize("text", ["{", "[" * 200_000, "null", '{"text": 1}', 5])
def test_a_damaged_answer_names_the_file_and_the_way_out(tmp_path: Path, text: object) -> None:
    path = tmp_path / "calls.sqlite"
    with Store(path) as store:
        put(store, "k")
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("UPDATE calls SET completion = ?", (text,))
        blocker.close()
        for read in (lambda: store.get("k"), lambda: list(store.calls())):
            with pytest.raises(UserError, match=r"calls\.sqlite: the answer of call k is damaged; move the file away"):
                read()


def test_whether_a_store_holds_calls(tmp_path: Path) -> None:
    path = tmp_path / "calls.sqlite"
    assert not holds_calls(path)
    with Store(path) as store:
        assert not holds_calls(path)
        put(store, "k")
        assert holds_calls(path)
    (tmp_path / "other").write_bytes(b"not a database" * 500)
    assert holds_calls(tmp_path / "other")


@pytest.mark.parametrize("field", ["value", "top", "off_grid"])
@pytest.mark.parametrize("number", ["NaN", "Infinity"])
def test_a_score_that_is_no_finite_number_is_a_damaged_line(tmp_path: Path, field: str, number: str) -> None:
    path = tmp_path / "j.jsonl"
    with JudgementFile(path) as file:
        file.append([judgement(0)])
    content = json.loads(path.read_text())
    content["scores"][0][field] = float(number)
    path.write_text(json.dumps(content) + "\n")
    with pytest.raises(UserError, match="line 1 is damaged"):
        JudgementFile(path)


def test_a_line_nested_too_deeply_is_a_damaged_line(tmp_path: Path) -> None:
    (tmp_path / "j.jsonl").write_text("[" * 200_000 + "\n")
    with pytest.raises(UserError, match="line 1 is damaged"):
        JudgementFile(tmp_path / "j.jsonl")
