"""A judge that answers from the known properties of simulated responses has QWK 1 on every dimension, by every method.

So prompts, schemas, parsing, aggregation and metrics are consistent with each other.
"""

import asyncio
import math
import re
from typing import Any

import pytest
from known_truth import KnownTruth
from scripted_methods import CGPST, as_sample, simulated

from eval.protocol import ALL, MEAN, METRICS, Protocol, protocol
from inference.aggregation import aggregate
from inference.engines.base import EngineConfig
from inference.engines.scripted import Answer, ScriptedEngine
from inference.judgement_file import JudgementFile
from inference.judges import JudgeConfig
from inference.methods.base import long_quotations
from inference.prompts import analyst_prompt, evidence_line, raw_questions
from inference.quotations import cut_memory
from inference.records import Call, Completion, Judgement, Sample
from inference.rubric import Step
from inference.runner import run_judges
from inference.store import Store

RESPONSES = simulated(66, 3)
RESPONSE_OF = {response.id: response for response in RESPONSES}
TRUTH = {response.id: {score.key: score.value for score in aggregate(CGPST, response.truth)} for response in RESPONSES}
SAMPLES = [as_sample(response).model_copy(update={"human": {"truth": TRUTH[response.id]}}) for response in RESPONSES]
JUDGES: dict[str, dict[str, Any]] = {
    "direct": {"method": "direct"},
    "direct_by_step": {"method": "direct", "judge_scope": "step"},
    "cot": {"method": "cot", "model": "one"},
    "tot": {"method": "tot"},
    "got": {"method": "got", "model": "hasty"},
    "tat": {"method": "tat"},
    "creaeval": {"method": "creaeval"},
    "by_step": {"method": "creaeval", "judge_scope": "step"},
    "not_stepwise": {"method": "creaeval", "stepwise": False},
    "no_memory": {"method": "creaeval", "memory": False},
    "no_evidence": {"method": "creaeval", "evidence": False},
    "not_decoupled": {"method": "creaeval", "decoupled": False},
    "compact": {"method": "compact", "model": "learned"},
    "compact_creaeval": {"method": "compact_creaeval", "model": "learned"},
}
"""Judge → settings; the model's name says how it answers."""


ASKS = {"direct": 1, "direct_by_step": 6, "cot": 6, "tot": 24, "got": 48, "tat": 1, "creaeval": 7, "by_step": 12}
"""Calls per response."""


class Learned:
    """Learned models without error: a judge of raw responses, an analyst that writes the simulated evidence and what
    each text is worth, and a judge of evidence that sees no more than its prompt.
    """

    def __init__(self) -> None:
        self.scores: dict[str, float] = {}
        self.lines: dict[str, str] = {}
        for sample in SAMPLES:
            self._learn(sample)

    def _learn(self, sample: Sample) -> None:
        response = RESPONSE_OF[sample.id]
        truth = {(score.key, score.item): score.value for score in response.truth}
        for question in raw_questions(CGPST, sample):
            step, dimension, per_item = CGPST.learned[question.learned]
            key = f"{step.name}.{dimension.name}"
            # Of items that don't count only that is known; their other scores must not matter.
            value = truth.get((key, question.item), dimension.range[1]) if per_item else TRUTH[sample.id][key]
            self.scores[question.prompt] = value or 0.0
        for part in response.evidence:
            step = next(step for step in CGPST.answered if step.name == part.step)
            for item, texts in enumerate(part.items, 1) if step.items else [(None, part.texts)]:
                worth = {d.name: truth.get((f"{step.name}.{d.name}", item)) for d in step.asked}
                said = {
                    name: text if worth[name] is None else f"{text} (worth {worth[name]:.0f})"
                    for name, text in texts.items()
                }
                self.lines[_shown(sample, step, item)] = evidence_line(step, said)

    def __call__(self, call: Call) -> Completion:
        prompt = call.prompt or ""
        if call.grid is None:
            return Completion(text=self.lines["".join(prompt.splitlines(keepends=True)[-2:])])
        worth = re.search(r"\(worth (\d+)\)", prompt)
        score = f"{self.scores[prompt]:.0f}" if prompt in self.scores else worth[1] if worth else call.grid[-1]
        assert score in call.grid
        return Completion(text=score, grid_logprobs={score: 0.0})


def _shown(sample: Sample, step: Step, item: int | None) -> str:
    """What an analyst is shown last: which step or item it is, and its text."""
    return "".join(analyst_prompt(sample, step, item).splitlines(keepends=True)[-2:])


def build(config: EngineConfig) -> ScriptedEngine:
    answers: dict[str, Answer] = {
        "sound": KnownTruth(CGPST, RESPONSES),
        "one": KnownTruth(CGPST, RESPONSES, scorers=1),
        "hasty": KnownTruth(CGPST, RESPONSES, hasty=True),
        "learned": Learned(),
    }
    return ScriptedEngine(config, answers[config.model])


Judged = dict[str, list[Judgement]]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """All samples by all judges."""
    folder = tmp_path_factory.mktemp("run")
    judges = [
        JudgeConfig.model_validate({"id": name, "engine": "scripted", "model": "sound", "concurrency": 64, **settings})
        for name, settings in JUDGES.items()
    ]
    with Store(folder / "calls.sqlite") as store, JudgementFile(folder / "judgements.jsonl") as sink:
        asyncio.run(run_judges(SAMPLES, judges, CGPST, store, sink, quiet=True, build=build))
        found: Judged = {name: [] for name in JUDGES}
        for judgement in sink.read():
            found[judgement.judge].append(judgement)
    return found


@pytest.mark.parametrize("name", JUDGES)
def test_every_score_of_every_sample_is_the_true_one(name: str, judged: Judged) -> None:
    assert len(CGPST.scored) == 31
    assert [judgement.sample_id for judgement in judged[name]] == list(TRUTH)
    for judgement in judged[name]:
        truth = TRUTH[judgement.sample_id]
        assert len(truth) == 31
        assert {score.key: score.value for score in judgement.scores} == pytest.approx(truth, abs=1e-9)
        assert {score.key: score.top for score in judgement.scores} == truth


@pytest.mark.parametrize("name", [name for name in JUDGES if name != "compact"])
def test_every_score_of_an_item_is_the_true_one(name: str, judged: Judged) -> None:
    """Of items that don't count only that is true."""
    for judgement in judged[name]:
        found = {(score.key, score.item): score.choice or score.value for score in judgement.items}
        truth = {(s.key, s.item): s.choice or s.value for s in RESPONSE_OF[judgement.sample_id].truth if s.item}
        if name != "compact_creaeval":  # asks nothing about blank items
            assert len(found) == 2 * 8 * 4 + 5 * 2
        assert {place: found[place] for place in truth} == truth


@pytest.mark.parametrize(("name", "calls"), ASKS.items())
def test_calls_per_response(name: str, calls: int, judged: Judged) -> None:
    assert {len(judgement.calls) for judgement in judged[name]} == {calls}


@pytest.mark.parametrize("name", ["creaeval", "by_step", "not_stepwise", "no_memory", "tat"])
def test_evidence_is_kept_with_the_judgement(name: str, judged: Judged) -> None:
    for judgement in judged[name]:
        assert [part.step for part in judgement.evidence] == [step.name for step in CGPST.answered]
        if name != "tat":
            response = RESPONSE_OF[judgement.sample_id]
            forbidden = long_quotations(CGPST, as_sample(response))
            known = {part.step: cut_memory(part, forbidden).memory for part in response.evidence}
            assert {part.step: part.memory for part in judgement.evidence} == known


def agreement(judgements: list[Judgement], samples: list[Sample]) -> Protocol:
    splits = {"test": {sample.id for sample in samples}}
    return protocol("run", "cgpst", samples, judgements, CGPST, splits, 0, True, resamples=20)


def test_agreement_is_one_on_every_reported_dimension(judged: Judged) -> None:
    assert len(SAMPLES) >= 60
    assert len({sample.scenario_id for sample in SAMPLES}) == 10
    found = agreement([judgement for of in judged.values() for judgement in of], SAMPLES)
    assert found.notes == {"test": []}
    reported = [(step.name, dimension.name) for step, dimension in CGPST.reported]
    assert len(reported) == 20
    for name in JUDGES:
        rows = {(row.step, row.dimension, row.metric, row.score): row for row in found.rows if row.judge == name}
        for pair in [*reported, (ALL, MEAN)]:
            for metric in METRICS:
                for score in ("value", "top"):
                    row = rows[(*pair, metric, score)]
                    assert row.value == pytest.approx(1.0, abs=1e-9)
                    assert (row.n, row.coverage) == (len(SAMPLES), 1.0)


def test_one_wrong_score_shows_in_its_dimension_alone(judged: Judged) -> None:
    """The figures above can fail: with one score of one sample off, agreement is below 1 there and nowhere else."""
    first, *others = judged["direct"]
    shifted = tuple(
        score.model_copy(update={"value": 11 - (score.value or 0), "top": 11 - (score.value or 0)})
        if score.key == "step6.development"
        else score
        for score in first.scores
    )
    found = agreement([first.model_copy(update={"scores": shifted}), *others], SAMPLES)
    below = {
        (row.step, row.dimension)
        for row in found.rows
        if row.metric == "qwk" and row.score == "value" and not math.isclose(row.value or 0.0, 1.0)
    }
    assert below == {("step6", "development"), ("step6", MEAN), (ALL, MEAN)}
