"""Simulated CGPST: scores follow from properties, raters agree as reported, texts differ, evidence describes."""

import hashlib
import json
import re
import time
from pathlib import Path

import numpy as np
import pytest

from eval.agreement import Array, icc, qwk
from eval.benchmarks.cgpst.benchmark import CgpstConfig, load
from eval.benchmarks.cgpst.check import inspect_file
from eval.benchmarks.cgpst.exchange import read_evidence
from eval.benchmarks.cgpst.score_json import read_scores
from eval.benchmarks.simulation import files
from eval.benchmarks.simulation.figures import rater_agreement, recurrence
from eval.benchmarks.simulation.levels import true_scores
from eval.benchmarks.simulation.parts import ItemPart, ResponseParts
from eval.benchmarks.simulation.pools import SCENARIOS, scenario_pool
from eval.benchmarks.simulation.raters import RATERS
from eval.benchmarks.simulation.simulate import SimulatedResponse, simulate, splits
from eval.cli import synth_cgpst
from eval.floors import evidence_text, ridge_floor
from eval.metrics import human_scores, judge_scores, score_tables
from inference.aggregation import aggregate
from inference.errors import UserError
from inference.records import Sample
from inference.rubric import Rubric, load_rubric

PUBLISHED_TOKENS = {"step1": 414, "step2": 108, "step3": 703, "step4": 88, "step5": 321, "step6": 779}
"""SmolLM2 tokens of the steps of A05_FS10."""
DIGEST = "93748a6c2d0e9e07"
QUOTATION = re.compile(r'"([^"]+)"')


@pytest.fixture(scope="module")
def rubric() -> Rubric:
    return load_rubric("cgpst")


@pytest.fixture(scope="module")
def responses(rubric: Rubric) -> list[SimulatedResponse]:
    return list(simulate(rubric, 0))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("simulated")
    files.write_simulation(out, 0)
    return out


def scores_by_hand(parts: ResponseParts) -> dict[str, float]:
    """The 23 dimensions, added up here without the rubric."""
    found: dict[str, float] = {}
    for step, items in (("step1", parts.challenges), ("step3", parts.solutions)):
        counted: list[ItemPart] = [part for part in items if part.kind == "valid"]
        found[f"{step}.fluency"] = len(counted)
        found[f"{step}.flexibility"] = len({part.category for part in counted})
        found[f"{step}.elaboration"] = sum(part.detail + part.tie for part in counted)
        found[f"{step}.originality"] = sum(part.novelty for part in counted)
    problem = parts.problem
    found["step2.condition_phrase"] = problem.condition
    found["step2.stem_kvp"] = problem.stem
    found["step2.purpose"] = problem.purpose
    found["step2.fs_parameters"] = {0: 0, 1: 0, 2: 1, 3: 2}[len(problem.parameters)]
    found["step4.correctly_written"] = sum(part.fault == "" for part in parts.criteria)
    found["step4.relevance"] = sum(part.relevance for part in parts.criteria)
    found["step5.correctly_used"] = {0: 5, 1: 4, 2: 3, 3: 2}.get(len(parts.grid.columns) + len(parts.grid.rows), 1)
    for name in ("relevance", "effectiveness", "criteria", "impact", "humaneness"):
        found[f"step6.{name}"] = getattr(parts.plan, name)
    found["step6.development"] = 1 + len(parts.plan.sections)
    return found


def test_true_scores_follow_from_the_properties(rubric: Rubric, written: Path) -> None:
    """In all 23 dimensions of all 200 responses: properties read back, the true scores' file, and sums made by hand."""
    published = {
        judgement.sample_id: judgement for judgement in read_scores(written / files.TRUE_SCORES, rubric, "truth")
    }
    properties = files.read_properties(written / files.PROPERTIES)
    assert len(properties) == len(published) == 200
    for parts in properties:
        filed = {score.key: score.value for score in published[parts.id].scores}
        computed = {score.key: score.value for score in aggregate(rubric, true_scores(parts))}
        assert filed == computed
        by_hand = scores_by_hand(parts)
        assert len(by_hand) == 21  # focus and adequacy are bands, tested on their own
        assert {key: computed[key] for key in by_hand} == by_hand
        weight = scenario_pool(parts.scenario).issues[parts.problem.issue].weight
        bands = {"off": (1, 3), "side": (4, 6), "suitable": (7, 8), "central": (9, 10)}
        assert bands[weight][0] <= (computed["step2.adequacy"] or 0) <= bands[weight][1]
        focus = computed["step2.focus"] or 0
        if not problem_is_stated(parts):
            assert focus <= 3
        elif parts.problem.scope in ("wide", "narrow") or parts.problem.stem < 3 or parts.problem.purpose == 1:
            assert 4 <= focus <= 6
        else:
            assert (9 <= focus <= 10) if parts.problem.scope == "sharp" else (7 <= focus <= 8)


def problem_is_stated(parts: ResponseParts) -> bool:
    return parts.problem.stem > 0 and parts.problem.purpose > 0


def rated(responses: list[SimulatedResponse], rubric: Rubric) -> dict[str, Array]:
    """Dimension → scores (200, 2) of the two raters."""
    tables = [
        [{score.key: score.value for score in aggregate(rubric, response.ratings[rater])} for rater in RATERS]
        for response in responses
    ]
    keys = [f"{step.name}.{dimension.name}" for step, dimension in rubric.scored]
    return {key: np.array([[scores[key] for scores in row] for row in tables], dtype=np.float64) for key in keys}


def test_raters_agree_as_the_raters_of_cgpst_are_reported_to(
    responses: list[SimulatedResponse], rubric: Rubric
) -> None:
    scores = rated(responses, rubric)
    reported = rater_agreement(responses, rubric)
    assert len(reported) == 20
    assert reported["step5.correctly_used"] == icc(scores["step5.correctly_used"], "icc2_1")
    assert abs(float(np.mean(list(reported.values()))) - 0.84) <= 0.03
    for step, dimension in rubric.scored:
        low, high = dimension.range
        values = set(scores[f"{step.name}.{dimension.name}"].ravel())
        assert len(values) >= min(3, high - low + 1)
        assert low <= min(values)
        assert max(values) <= high


@pytest.mark.slow
def test_lengths_are_those_of_the_published_response(responses: list[SimulatedResponse]) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    path = Path(__file__).parents[2] / "models/smollm2-135m/tokenizer.json"
    if not path.is_file():
        pytest.skip("the base model is not there: bash scripts/setup.sh --base-model")
    tokenizer = tokenizers.Tokenizer.from_file(str(path))
    for step, published in PUBLISHED_TOKENS.items():
        lengths = [len(tokenizer.encode("\n".join(response.texts[step])).ids) for response in responses]
        assert 0.7 <= np.mean(lengths) / published <= 1.3, step
        assert np.percentile(lengths, 95) <= 2 * published, step


def test_responses_to_a_scenario_differ(responses: list[SimulatedResponse]) -> None:
    """Under 5 % of each response's word 8-grams recur in another response to its scenario."""
    shares = recurrence(responses)
    assert len(shares) == 200
    assert max(shares.values()) < 0.05


def test_same_seed_same_bytes(written: Path, tmp_path: Path) -> None:
    """Also on another machine: the digest of all files is written down here."""
    started = time.monotonic()
    paths = files.write_simulation(tmp_path, 0)
    assert time.monotonic() - started < 60
    assert all((written / path.name).read_bytes() == path.read_bytes() for path in paths)
    assert hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()[:16] == DIGEST
    other = files.write_simulation(tmp_path / "other", 1)
    assert other[1].read_bytes() != paths[1].read_bytes()


def test_other_respondents_answer_without_changing_the_first(written: Path, tmp_path: Path) -> None:
    files.write_simulation(tmp_path, 0, range(20, 22))
    both = {entry[0]: entry for entry in json.loads((tmp_path / files.RATINGS).read_text())}
    benchmark = {entry[0]: entry for entry in json.loads((written / files.RATINGS).read_text())}
    assert sorted(both) == sorted(f"A{number}_{name}" for number in (20, 21) for name in SCENARIOS)
    assert set(both) & set(benchmark) == {f"A20_{name}" for name in SCENARIOS}
    assert all(both[name] == benchmark[name] for name in set(both) & set(benchmark))
    found = splits(0, range(20, 22))["scenario"]
    assert json.loads((tmp_path / files.SPLITS).read_text())["scenario"] == found
    assert sorted(found["test"]) == sorted(
        f"A{number}_{name}" for number in (20, 21) for name in ("FS4", "FS7", "FS10")
    )
    assert "--first 20 --last 21" in (tmp_path / files.CARD).read_text(encoding="utf-8")


def test_a_range_without_respondents(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"^--last 20 is before --first 21: no respondent is left$"):
        synth_cgpst(tmp_path, first=21)
    assert not list(tmp_path.iterdir())


def test_files_are_sound_and_say_that_they_are_simulated(written: Path) -> None:
    for path in written.iterdir():
        if path.name != files.CARD:
            assert inspect_file(path).errors == 0, path.name
        assert path.name.startswith("simulated_")
    assert "This is a simulation" in (written / files.CARD).read_text(encoding="utf-8")


def test_files_of_the_user_stay_as_they_are(tmp_path: Path) -> None:
    own = [tmp_path / name for name in ("README.md", "ratings.json", "notes.txt")]
    for path in own:
        path.write_text("mine", encoding="utf-8")
    files.write_simulation(tmp_path, 0)
    assert [path.read_text(encoding="utf-8") for path in own] == ["mine"] * 3


def test_splits_are_seven_to_three_and_apart(written: Path, rubric: Rubric) -> None:
    for name, sides in splits(0).items():
        assert (len(sides["train"]), len(sides["test"])) == (140, 60), name
        assert not set(sides["train"]) & set(sides["test"])
    parts = {}
    for part in ("train", "test"):
        config = CgpstConfig(
            name="cgpst",
            ratings=str(written / files.RATINGS),
            scenarios=str(written / files.SCENARIO_FILE),
            splits=str(written / files.SPLITS),
            part=part,  # type: ignore[arg-type]
        )
        benchmark = load(config, rubric)
        assert benchmark.simulated
        parts[part] = {sample.scenario_id for sample in benchmark.samples}
    assert parts["test"] == {"FS4", "FS7", "FS10"}
    assert not parts["train"] & parts["test"]


def telling(text: str) -> set[str]:
    """Words of four letters and more that carry meaning."""
    return set(re.findall(r"[a-z]{4,}", text.lower())) - {
        *("with", "from", "that", "this", "does", "them", "than", "more", "what", "which", "would", "about", "without"),
    }


def normalised(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def test_evidence_quotes_the_response_and_names_no_level(responses: list[SimulatedResponse], rubric: Rubric) -> None:
    """Three to seven words of the response per item; outside of quotations no number and no word of the levels."""
    forbidden = re.compile(r"\d|\b(valid|invalid|level|score|zero|one|two|three|four|five)\b")
    levels = {
        (step.name, d.name): {word for meaning in d.levels.values() for word in telling(meaning)}
        for step, d in rubric.asked
    }
    for response in responses:
        for part in response.evidence:
            texts = [pair for item in (part.texts, *part.items) for pair in item.items()]
            raw = normalised("\n".join(response.texts[part.step]))
            for dimension, text in texts:
                for quote in QUOTATION.findall(text):
                    assert 3 <= len(quote.split()) <= 7, (response.id, text)
                    assert normalised(quote) in raw, (response.id, text)
                described = QUOTATION.sub("", text)
                assert text
                assert not forbidden.search(described), (response.id, text)
                assert not levels[part.step, dimension] & telling(described), (response.id, text)
            for number, item in enumerate(part.items, 1):
                blank = not response.texts[part.step][number - 1]
                assert blank or QUOTATION.search(" ".join(item.values())), (response.id, part.step, number)
            assert not re.search(r"\bA\d\d_FS", part.memory)


def test_evidence_comes_back_from_its_file(responses: list[SimulatedResponse], rubric: Rubric, written: Path) -> None:
    assert read_evidence(written / files.EVIDENCE, rubric) == {response.id: response.evidence for response in responses}


def test_words_alone_do_not_give_the_scores_away(
    responses: list[SimulatedResponse], rubric: Rubric, written: Path
) -> None:
    """Ridge regression on the words of raw responses stays below .60; on the evidence it is far better."""
    samples = load(
        CgpstConfig(
            name="cgpst", ratings=str(written / files.RATINGS), scenarios=str(written / files.SCENARIO_FILE), part="all"
        ),
        rubric,
    ).samples
    evidence = {response.id: response.evidence for response in responses}
    held_out = set(splits(0)["scenario"]["test"])

    def analysed(sample: Sample) -> dict[str, str]:
        return {step.name: evidence_text(evidence[sample.id], step.name) for step in rubric.answered}

    figures = {}
    for name in ("raw", "evidence"):
        texts = [(s, s.responses if name == "raw" else analysed(s)) for s in samples]
        test = [(s, t) for s, t in texts if s.id in held_out]
        judgements = ridge_floor(name, rubric, [(s, t) for s, t in texts if s.id not in held_out], test)
        table = score_tables(judgements)[name, "ridge"]
        kappas = []
        for step, dimension in rubric.reported:
            key = f"{step.name}.{dimension.name}"
            judge = judge_scores([s for s, _ in test], table, key, "value")
            for rater in ("rater1", "rater2"):
                human = human_scores([s for s, _ in test], rater, key)
                kappas.append(qwk(human, judge, step=1, score_range=dimension.range))
        figures[name] = float(np.mean(kappas))
    assert figures["raw"] < 0.60
    assert figures["evidence"] > figures["raw"] + 0.3
