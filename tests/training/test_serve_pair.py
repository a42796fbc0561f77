"""The benchmark of an analyst and a judge as two adapters in one vLLM, on a tiny model and a stand-in for vLLM."""

import re
import runpy
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import fake_vllm
import pytest
from fake_vllm import FakeVLLM
from tiny_model import write_adapter, write_model

from inference.check_adapter import largest_score_difference, read_directly
from inference.errors import UserError
from inference.records import Call
from inference.rubric import load_rubric
from inference.tokens import load_tokenizer

SCRIPT = Path(__file__).parents[2] / "scripts" / "benchmarks" / "serve_pair.py"
TEXTS = {step.name: " | ".join("abcdefgh"[: len(step.asked)]) for step in load_rubric("cgpst").answered}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="module")
def adapters(model: Path) -> dict[str, Path]:
    return {
        role: write_adapter(model, model.parent / role, seed=seed) for seed, role in enumerate(("analyst", "judge"))
    }


@pytest.fixture
def vllm(model: Path, monkeypatch: pytest.MonkeyPatch) -> FakeVLLM:
    """Writes readable evidence on the step that a prompt asks about."""
    tokenizer = load_tokenizer(model)

    def write(prompt: list[int]) -> list[int]:
        steps = re.findall(r"^(step\d)\b", tokenizer.decode(prompt), re.MULTILINE)
        return list(map(ord, TEXTS[steps[-1]] if steps else "x"))

    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    return fake_vllm.install(monkeypatch, write)


class _Asked:
    """What a call to the stand-in asked for."""

    def __init__(self, settings: Any) -> None:
        self.tokens, self.fixed = settings.max_tokens, getattr(settings, "ignore_eos", False)


def run(monkeypatch: pytest.MonkeyPatch, *options: object) -> None:
    monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, options)])
    runpy.run_path(str(SCRIPT))["main"]()


def test_both_set_ups_answer_the_same_calls(
    vllm: FakeVLLM,
    model: Path,
    adapters: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["--model", model, "--samples", 1, "--max-model-len", 8192, "--prompts", 5]
    run(monkeypatch, "--analyst", adapters["analyst"], "--judge", adapters["judge"], *options)
    found: dict[str, Any] = dict(re.findall(r"^(\S.*?)  +([\d.]+)", capsys.readouterr().out, re.MULTILINE))

    # Recorded once, then twice the pair in one model and the merged ones in two.
    assert [llm.options.get("max_loras") for llm in vllm.started] == [2] + [2, None, None] * 2
    assert not vllm.running
    assert {kind for llm in vllm.started for kind, _ in llm.batches} == {"grid", "text"}
    recorded, pair, analyst, judge = ([_Asked(one) for one in llm.settings] for llm in vllm.started[:4])
    assert not any(one.fixed for one in recorded)
    lengths, alone = (Counter(one.tokens for one in part if one.fixed) for part in (pair, analyst))
    assert lengths.total() == int(found["calls of the analyst"]) + 2
    assert lengths - alone == Counter({8: 1})  # the judge's warm-up
    assert len(pair) == len(analyst) + len(judge)

    assert float(found["equal texts"]) == float(found["equal expected scores"]) == 1.0
    # The stand-in marks what it computes with an adapter: by .01 or .02 a digit, whichever adapter came first.
    assert float(found["largest logprob diff."]) in (0.02, 0.04)
    assert int(found["prompts against PEFT"]) == 5
    assert float(found["PEFT, score difference"]) > 0
    assert float(found["two adapters : merged"]) > 0


def test_one_adapter_for_both_roles_is_refused(
    vllm: FakeVLLM, model: Path, adapters: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(UserError, match="the same adapter"):
        run(monkeypatch, "--analyst", adapters["judge"], "--judge", adapters["judge"], "--model", model)
    assert not vllm.started


def test_an_analyst_without_readable_evidence_is_named(
    vllm: FakeVLLM, model: Path, adapters: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    vllm.write = lambda _: [ord("|")]
    options = ["--model", model, "--samples", 1, "--max-model-len", 8192]
    with pytest.raises(UserError, match="no evidence that can be read"):
        run(monkeypatch, "--analyst", adapters["analyst"], "--judge", adapters["judge"], *options)


def test_differences_of_scores_are_shares_of_the_range() -> None:
    calls = [Call(prompt="x", grid=tuple("12345")), Call(prompt="y", grid=("0", "1"))]
    sure, unsure = [0.0, -99.0, -99.0, -99.0, -99.0], [-0.69314718, -99.0, -99.0, -99.0, -0.69314718]
    assert largest_score_difference([sure, [0.0, -99.0]], [unsure, [0.0, -99.0]], calls) == pytest.approx(0.5)
    assert largest_score_difference([sure, [0.0, -99.0]], [sure, [-99.0, 0.0]], calls) == pytest.approx(1.0)


def test_strings_that_begin_others_are_no_direct_reading() -> None:
    calls = [Call(prompt="x", grid=tuple(str(score) for score in range(1, 11))), Call(prompt="y", grid=("0", "1"))]
    found = read_directly([[float(score) for score in range(1, 11)], [5.0, 6.0]], calls)
    assert found == [[float(score) for score in range(2, 11)], [5.0, 6.0]]
