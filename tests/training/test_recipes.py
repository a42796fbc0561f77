"""The recipes for CGPST judges: rows, settings, the test kept out, and whole runs on a tiny model."""

import asyncio
import csv
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cgpst_files import RUBRIC, SCENARIOS, entry
from scripted_methods import as_sample, simulated

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from tiny_model import write_model  # noqa: E402

from eval.benchmarks.cgpst.samples import to_samples  # noqa: E402
from eval.benchmarks.simulation.files import write_simulation  # noqa: E402
from eval.benchmarks.simulation.pools import SCENARIOS as SIMULATED  # noqa: E402
from eval.benchmarks.simulation.pools import scenario_pool  # noqa: E402
from eval.protocol import ALL, MEAN, METRICS, protocol  # noqa: E402
from inference.adapter_notes import JudgeNote, note_of  # noqa: E402
from inference.aggregation import aggregate  # noqa: E402
from inference.engines.base import EngineConfig  # noqa: E402
from inference.engines.hf import HFEngine  # noqa: E402
from inference.errors import UserError  # noqa: E402
from inference.methods import METHODS, Asks, Settings  # noqa: E402
from inference.prompts import evidence_line, step_memory, template_digest  # noqa: E402
from inference.records import Call, Completion, Judgement, Sample, Score, StepEvidence  # noqa: E402
from inference.tokens import encode_plain, load_tokenizer  # noqa: E402
from training.data import Evidence, build_rows, check_all_taught  # noqa: E402
from training.evidence import load_evidence, need_evidence  # noqa: E402
from training.fit import build_trainer, parse_arguments, prepare, save_adapter  # noqa: E402
from training.settings import DataSettings  # noqa: E402
from training.sft import load_parts, main  # noqa: E402
from training.traces.records import Trace, TracesInfo, write_traces  # noqa: E402
from training.validation import judge_rows, judgements, whole_metrics  # noqa: E402

torch.set_num_threads(1)

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "models" / "smollm2-135m"
SAMPLES = to_samples([entry(f"A0{n}_FS{n}", f"FS{n}") for n in (1, 2, 3)], RUBRIC, SCENARIOS)
NAMES = [f"{step.name}.{dimension.name}" for step, dimension, _ in RUBRIC.learned]


def told(sample: Sample) -> tuple[StepEvidence, ...]:
    """Evidence that differs from text to text; the fifth challenge has none."""
    parts = []
    for step in RUBRIC.answered:
        rows = []
        for item in range(1, step.items.count + 1) if step.items else [0]:
            given = {d.name: f"{d.name} of {item}, {sample.id}" for d in step.asked}
            rows.append(given | {d.name: d.choices[item] for d in step.asked if d.choices})
        if step.name == "step1":
            rows[4] = {}
        shown: dict[str, Any] = {"items": tuple(rows)} if step.items else {"texts": rows[0]}
        parts.append(StepEvidence(step=step.name, **shown))
    return tuple(parts)


EVIDENCE: Evidence = {sample.id: told(sample) for sample in SAMPLES}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny") / "model")


# -- rows


def test_rows_have_the_mean_of_the_raters_or_one_each(model: Path) -> None:
    tokenizer = load_tokenizer(model)
    means = build_rows(SAMPLES[:1], RUBRIC, tokenizer)
    focus, elaboration = NAMES.index("step2.focus"), NAMES.index("step1.elaboration")
    human = [scores["step2.focus"] for scores in SAMPLES[0].human.values()]
    assert [row.target for row in means if row.reader == focus] == [sum(human) / 2]
    items = [score for scores in SAMPLES[0].human_items.values() for score in scores if score.item == 3]
    third = [score.value for score in items if score.key == NAMES[elaboration]]
    assert [row.target for row in means if (row.reader, row.item) == (elaboration, 3)] == [sum(map(float, third)) / 2]
    each = build_rows(SAMPLES[:1], RUBRIC, tokenizer, targets="each")
    assert [row.target for row in each if row.reader == focus] == human
    assert len(each) == 2 * len(means)


def test_what_nobody_rated_is_asked_but_never_learned(model: Path) -> None:
    """The raters let the fourth solution not count, so its other scores don't exist."""
    tokenizer = load_tokenizer(model)
    every = build_rows(SAMPLES[:1], RUBRIC, tokenizer, unrated=True)
    unrated = {(NAMES[row.reader], row.item) for row in every if not row.rated}
    assert unrated == {("step3.elaboration", 4), ("step3.originality", 4)}
    assert all(math.isnan(row.target) for row in every if not row.rated)
    assert [row for row in every if row.rated] == build_rows(SAMPLES[:1], RUBRIC, tokenizer)


def test_rows_of_evidence_hold_no_response_and_no_counts(model: Path) -> None:
    tokenizer = load_tokenizer(model)
    rows = build_rows(SAMPLES[:1], RUBRIC, tokenizer, evidence=EVIDENCE, unrated=True)
    asked = {(NAMES[row.reader], row.item) for row in rows}
    assert ("step1.elaboration", 4) in asked
    assert not {("step1.flexibility", None), ("step1.elaboration", 5)} & asked
    shown = {tokenizer.decode(row.input_ids) for row in rows}
    assert "step1 elaboration\nelaboration of 4, A01_FS1\n" in shown
    assert not any("number 4" in text or "Theme" in text for text in shown)


def test_what_the_data_does_not_teach_is_named(model: Path) -> None:
    tokenizer = load_tokenizer(model)
    whole = [sample.model_copy(update={"human_items": {}}) for sample in SAMPLES]
    with pytest.raises(UserError, match=r"no ratings of single challenges on step1\.fluency"):
        check_all_taught(build_rows(whole, RUBRIC, tokenizer), RUBRIC, None)
    short = {name: [part for part in parts if part.step != "step5"] for name, parts in EVIDENCE.items()}
    with pytest.raises(UserError, match=r"no ratings with evidence on step5\.correctly_used"):
        check_all_taught(build_rows(SAMPLES, RUBRIC, tokenizer, evidence=short), RUBRIC, short)
    check_all_taught(build_rows(SAMPLES, RUBRIC, tokenizer, evidence=EVIDENCE), RUBRIC, EVIDENCE)


@pytest.mark.skipif(not (MODEL / "config.json").exists(), reason="no base model: python scripts/base_model.py")
def test_lines_of_simulated_data_are_as_short_as_they_should_be() -> None:
    tokenizer = load_tokenizer(MODEL)
    for name in SIMULATED:
        pool = scenario_pool(name)
        assert len(encode_plain(tokenizer, f"{pool.theme}. {pool.gist}")) <= 40
    steps = {step.name: step for step in RUBRIC.answered}
    memories = {step_memory(steps[part.step], part) for r in simulated(200)[::4] for part in r.evidence}
    assert max(len(encode_plain(tokenizer, memory)) for memory in memories) <= 40


# -- trained is served


@pytest.mark.parametrize("evidence", [None, EVIDENCE], ids=["sft_raw", "sft_evidence"])
def test_trained_scores_equal_served_scores(evidence: Evidence | None, model: Path, tmp_path: Path) -> None:
    settings = tiny_settings(model, tmp_path / "out")
    args, model_args = parse_arguments(settings)
    tokenizer = load_tokenizer(model)
    parts = {"train": SAMPLES[:2], "validation": SAMPLES[2:]}
    rows, counts = prepare(parts, RUBRIC, tokenizer, 1100, evidence)
    assert [count["supervised"] < count["rows"] for count in counts] == [False, True]
    trainer = build_trainer(args, model_args, {}, tokenizer, RUBRIC, rows, parts["validation"], evidence)
    trainer.train()
    save_adapter(trainer, tmp_path / "adapter", str(model))
    scores = judge_rows(trainer, rows["validation"], RUBRIC, 16)
    (expected,) = judgements(rows["validation"], scores, parts["validation"], RUBRIC, "judge", evidence)
    unscored = {score.key.split(".")[0] for score in expected.scores if score.unscored}
    assert unscored == (set() if evidence is None else {"step1", "total"})  # a challenge has no evidence

    engine = HFEngine(EngineConfig(engine="hf", model=str(model), adapter=str(tmp_path / "adapter")))
    method = METHODS["compact" if evidence is None else "compact_creaeval"]
    asks = Asks(engine.complete, replay(SAMPLES[2]))
    served = asyncio.run(method(RUBRIC, SAMPLES[2], asks, Settings()))
    found = {(score.key, score.item): score for score in served.scores}
    answered = [*expected.items, *(score for score in expected.scores if not score.unscored)]
    assert len(expected.items) > 50
    for score in (score for score in answered if (score.key, score.item) in found):
        other = found[score.key, score.item]
        assert other.choice == score.choice
        if score.choice is None:
            assert other.value == pytest.approx(score.value, abs=1e-4)
            assert other.off_grid == pytest.approx(score.off_grid, abs=1e-4)
    assert {(s.key, s.item) for s in expected.items} <= set(found)
    whole = {score.key: score.value for score in aggregate(RUBRIC, served.scores)}
    assert whole == pytest.approx({score.key: score.value for score in expected.scores}, abs=1e-3)


def replay(sample: Sample) -> Callable[[Call], Any]:
    """An analyst that writes `told`; what has no text it can't put into words."""

    async def ask(call: Call) -> Completion:
        place = (call.prompt or "").splitlines()[-2].split()
        (step,) = (step for step in RUBRIC.answered if step.name == place[0])
        (part,) = (part for part in told(sample) if part.step == step.name)
        texts = part.items[int(place[-1]) - 1] if step.items else part.texts
        return Completion(text=evidence_line(step, texts) if texts else "?")

    return ask


def tiny_settings(model: Path, out: Path) -> dict[str, Any]:
    return {
        "model_name_or_path": str(model),
        "use_peft": True,
        "lora_target_modules": "all-linear",
        "lora_r": 4,
        "output_dir": str(out),
        "max_steps": 3,
        "learning_rate": 1e-2,
        "ce_weight": 0.1,
        "raft_weight": 16.0,
        "per_device_train_batch_size": 8,
        "per_device_eval_batch_size": 16,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "save_strategy": "no",
        "report_to": "none",
    }


def test_whole_metrics_are_the_averages_of_reports() -> None:
    answers = [
        Judgement(sample_id=s.id, judge="j", method="m", rubric="r", scores=rated_otherwise(number, s))
        for number, s in enumerate(SAMPLES)
    ]
    split = {"test": {sample.id for sample in SAMPLES}}
    rows = protocol("run", "cgpst", SAMPLES, answers, RUBRIC, split, 0, True, resamples=10).rows
    found = whole_metrics(answers, SAMPLES, RUBRIC)
    for row in (row for row in rows if (row.judge, row.step, row.dimension) == ("j", ALL, MEAN)):
        if row.metric in METRICS and row.rater == MEAN:
            value = found[("top_" if row.score == "top" else "") + f"average_{row.metric}"]
            assert value == (None if row.value is None else pytest.approx(row.value, abs=1e-6))
    assert len(found) == 6


def rated_otherwise(number: int, sample: Sample) -> tuple[Score, ...]:
    first = sample.human["rater1"]
    return tuple(
        Score(step=step.name, dimension=d.name, value=first[f"{step.name}.{d.name}"] + 0.3 * number, top=float(number))
        for step, d in RUBRIC.scored
    )


# -- whole runs


@pytest.fixture(scope="module")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Settings on simulated data: two answers to each of two scenarios for training, two answers held out."""
    folder = tmp_path_factory.mktemp("simulated")
    write_simulation(folder)
    splits = json.loads((folder / "simulated_splits.json").read_text())["scenario"]
    train, test = [*splits["train"][:2], *splits["train"][20:22]], splits["test"][:2]
    ratings = json.loads((folder / "simulated_ratings.json").read_text())
    kept = [answer for answer in ratings if answer[0] in (*train, *test)]
    (folder / "ratings.json").write_text(json.dumps(kept))
    (folder / "splits.json").write_text(json.dumps({"scenario": {"train": train, "test": test}}))
    return {
        "rubric": str(ROOT / "configs" / "rubrics" / "cgpst.yaml"),
        "benchmark": {
            "name": "cgpst",
            "ratings": str(folder / "ratings.json"),
            "scenarios": str(folder / "simulated_scenarios.json"),
            "splits": str(folder / "splits.json"),
        },
        "validation_share": 0.5,
        "split_by": "scenario",
        "max_prompt_tokens": 8000,
        "evidence": str(folder / "simulated_evidence.json"),
    }


@pytest.mark.parametrize("recipe", ["sft_raw", "sft_evidence"])
def test_a_recipe_from_files_to_adapter(
    recipe: str, simulation: dict[str, Any], model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    config = {**simulation, **tiny_settings(model, out), "recipe": recipe, "eval_strategy": "steps", "eval_steps": 2}
    if recipe == "sft_raw":
        del config["evidence"]
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    try:
        code = main(["--config", str(path)])
    finally:
        torch.set_flush_denormal(False)  # training sets it for the process, and hypothesis minds
    said = capsys.readouterr()
    assert code == 0, said.err
    assert {file.name for file in (out / "adapter").iterdir()} >= {"README.md", "adapter_model.safetensors"}
    note = note_of(out / "adapter")
    assert isinstance(note, JudgeNote)
    split = json.loads(Path(simulation["benchmark"]["splits"]).read_text())["scenario"]
    assert note.trained_on == tuple(sorted(split["train"]))  # the validation among them
    assert (note.recipe, note.rubric) == (recipe, f"{RUBRIC.name}@{RUBRIC.digest}")
    assert ("step1.flexibility" in note.dimensions) == (recipe == "sft_raw")
    figures = json.loads((out / "figures.json").read_text())
    assert list(figures) == ["validation"]
    assert figures["validation"].keys() >= {"rmse", "average_qwk", "top_average_icc2_1"}
    assert figures["validation"]["rmse"] > 0
    logged = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in logged if "eval_rmse" in entry] == [2, 3]
    with (out / "validation_scores.csv").open() as file:
        scores = list(csv.DictReader(file))
    assert len(scores) == 2
    assert all(float(row["out_step6.overall_value"]) >= 6 for row in scores)
    card = (out / "adapter" / "README.md").read_text()
    assert "the part `train` of the split by scenario" in card
    assert ("simulated_evidence.json" in card) == (recipe == "sft_evidence")
    assert "Average over the rubric's reported dimensions" in card
    assert "No test was judged" in card
    assert set(yaml.safe_load((out / "config.yaml").read_text())["sha256"]) >= {"ratings", "scenarios", "splits"}


# -- settings and the test kept out


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"train_file": "x.csv"}, "exactly one of train_file and benchmark"),
        ({"benchmark": None}, "exactly one of train_file and benchmark"),
        ({"recipe": "sft_raw"}, "both or neither"),
        ({"evidence": None}, "both or neither"),
        ({"test_file": "x.csv"}, "benchmark has a test part of its own, remove test_file"),
        ({"splits": "x.json"}, "benchmark has a test part of its own, remove splits"),
        ({"benchmark": {"part": "test"}}, "learns from the part train"),
        ({"benchmark": {"splits": None}}, "needs `splits`"),
    ],
)
def test_settings_that_do_not_fit_together(changes: dict[str, Any], words: str, simulation: dict[str, Any]) -> None:
    given = {**simulation, "recipe": "sft_evidence"}
    DataSettings.model_validate(given)
    if changes.get("benchmark"):
        changes = {"benchmark": {**simulation["benchmark"], **changes["benchmark"]}}
    with pytest.raises(ValueError, match=words):
        DataSettings.model_validate({**given, **changes})


def test_training_and_validation_are_of_the_train_part_and_of_different_scenarios(simulation: dict[str, Any]) -> None:
    data = DataSettings.model_validate({**simulation, "recipe": "sft_evidence"})
    _, parts = load_parts(data)
    split = json.loads(Path(simulation["benchmark"]["splits"]).read_text())["scenario"]
    assert sorted(s.id for samples in parts.values() for s in samples) == sorted(split["train"])
    scenarios = [{sample.scenario_id for sample in samples} for samples in parts.values()]
    assert not scenarios[0] & scenarios[1]
    assert all(sample.subject.startswith(scenario_pool(sample.scenario_id).theme) for sample in parts["train"])


def test_a_test_id_in_a_training_file_is_refused(tmp_path: Path) -> None:
    lines = ["id,scenario,response,originality", *(f"s{n},rope,use {n},{n % 5 + 1}" for n in range(10))]
    (tmp_path / "train.csv").write_text("\n".join(lines))
    (tmp_path / "splits.json").write_text(json.dumps({"sample": {"train": ["s0"], "test": ["s3", "other"]}}))
    settings = {
        "rubric": str(ROOT / "configs" / "rubrics" / "aut.yaml"),
        "train_file": str(tmp_path / "train.csv"),
        "validation_share": 0.3,
    }
    load_parts(DataSettings.model_validate(settings))
    held_out = {"splits": str(tmp_path / "splits.json"), "split": "sample"}
    with pytest.raises(UserError, match=r"1 test ids are in the (train|validation) data, the first is s3"):
        load_parts(DataSettings.model_validate({**settings, **held_out}))


def test_evidence_of_traces_is_without_test_ids_and_dropped_items(tmp_path: Path) -> None:
    sample = as_sample(simulated(1)[0])
    part = simulated(1)[0].evidence[0]
    trace = Trace(
        sample_id=sample.id,
        scenario_id=sample.scenario_id,
        scenario=sample.scenario,
        subject="",
        step="step1",
        response=sample.responses["step1"],
        memories={},
        noted={},
        evidence=part,
        items=(1, 2, 4),
        teacher="oracle",
    )
    info = TracesInfo(
        teachers={"oracle": "oracle"},
        sources=("made up",),
        rubric=RUBRIC,
        rubric_digest=RUBRIC.digest,
        prompts=template_digest(),
        simulated=True,
    )
    write_traces(tmp_path / "traces", [trace], info)
    (found,) = load_evidence(str(tmp_path / "traces"), RUBRIC, {"other"})[sample.id]
    assert [bool(row) for row in found.items] == [number in (1, 2, 4) for number in range(1, 9)]
    assert found.items[0] == part.items[0]
    with pytest.raises(UserError, match="1 test ids"):
        load_evidence(str(tmp_path / "traces"), RUBRIC, {sample.id})


def test_samples_without_evidence_are_named() -> None:
    need_evidence(SAMPLES, EVIDENCE, "e.json")
    with pytest.raises(UserError, match=r"e\.json: has no evidence on 1 of the answers, the first is A02_FS2"):
        need_evidence(SAMPLES, {name: of for name, of in EVIDENCE.items() if name != "A02_FS2"}, "e.json")
