"""Traces: collected from runs and from the oracle, filtered for every reason, refused by name, split and folded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("datasets")

from scripted_methods import CGPST, as_sample, simulated
from tiny_model import write_model
from trace_files import IDS, benchmark, evidence, write_files
from trace_runs import CONFIG, JUDGES, RESPONSES, write_run

from eval.benchmarks.cgpst.benchmark import read_splits
from eval.benchmarks.cgpst.exchange import read_evidence
from eval.benchmarks.simulation.files import SPLITS
from inference.errors import UserError
from inference.judge import judge_file
from inference.records import StepEvidence
from training.cli import main
from training.data import refuse_overlap
from training.sot_settings import SotSettings, load_parts
from training.splits import make_folds, make_splits
from training.traces import filter as filters
from training.traces.collect import collect_oracle, collect_runs, traces_of
from training.traces.duplicates import near_duplicates
from training.traces.filter import FilterConfig, filter_folder, filter_traces
from training.traces.records import INFO, Trace, read_traces


def oracle_traces(count: int = 3) -> list[Trace]:
    return [
        trace
        for response in RESPONSES[:count]
        for trace in traces_of(CGPST, as_sample(response), response.evidence, {}, "oracle", 0, memory=True)
    ]


def test_a_run_becomes_traces_with_its_texts_read_again(run_dir: Path, tmp_path: Path) -> None:
    collect_runs([run_dir], tmp_path / "traces")
    info, traces = read_traces(tmp_path / "traces")
    assert list(info.teachers) == ["analyst"]
    assert info.simulated
    assert info.counts["samples"] == len(RESPONSES)
    assert info.counts["traces"] == len(traces) == 6 * len(RESPONSES) * 2
    known = {response.id: response for response in RESPONSES}
    for trace in traces:
        response = known[trace.sample_id]
        assert trace.response == as_sample(response).responses[trace.step]
        assert trace.subject.startswith("Autonomous Transportation. ")
        assert set(trace.human) == {"rater1", "rater2"}
        assert {key.partition(".")[0] for scores in trace.human.values() for key in scores} == {trace.step}
        assert trace.judged.keys() >= next(iter(trace.human.values())).keys()
    third = next(trace for trace in traces if trace.step == "step3")
    assert list(third.memories) == list(third.noted) == ["step1", "step2"]
    assert third.memories["step2"] == known[third.sample_id].evidence[1].memory
    card = (tmp_path / "traces" / "README.md").read_text(encoding="utf-8")
    for words in ("`analyst`: creaeval, analyst scripted sound", info.rubric_digest, info.prompts, "Simulated | yes"):
        assert words in card


def test_the_oracle_stands_in_for_a_teacher_and_test_answers_stay_out(simulation: Path, tmp_path: Path) -> None:
    splits = str(simulation / SPLITS)
    info = collect_oracle(simulation, tmp_path / "traces", splits=splits)
    assert info.left_out["not in the training part"] == 60
    info, traces = read_traces(tmp_path / "traces")
    train = read_splits(splits, "scenario")["train"]
    assert {trace.sample_id for trace in traces} == train
    assert info.split is not None
    assert "no test answer is here" in (tmp_path / "traces" / "README.md").read_text(encoding="utf-8")
    # The evidence beside the table is the oracle's, in the official layout.
    found, oracle = (
        read_evidence(f, CGPST) for f in (tmp_path / "traces" / "evidence.json", simulation / "simulated_evidence.json")
    )
    assert found == {name: parts for name, parts in oracle.items() if name in train}


def test_unscored_samples_are_left_out_and_counted(simulation: Path, tmp_path: Path) -> None:
    first = as_sample(RESPONSES[0]).responses["step2"][:40]
    write_run(tmp_path / "run", simulation, [JUDGES[1]], broken=first)
    info = collect_runs([tmp_path / "run"], tmp_path / "traces")
    assert info.left_out == {"unscored": 2}
    _, traces = read_traces(tmp_path / "traces")
    assert {trace.sample_id for trace in traces} == {response.id for response in RESPONSES[1:]}


def test_a_run_with_no_whole_sample_is_refused(simulation: Path, tmp_path: Path) -> None:
    write_run(tmp_path / "run", simulation, [JUDGES[1]], broken="Response to step step6")
    with pytest.raises(UserError, match=r"no judgement of analyst is whole \(\d+ unscored\)"):
        collect_runs([tmp_path / "run"], tmp_path / "traces")
    assert not (tmp_path / "traces").exists()


def changed(run_dir: Path, copy: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    """A copy of the run with other settings."""
    copy.mkdir()
    settings = yaml.safe_load((run_dir / "config.yaml").read_text(encoding="utf-8"))
    change(settings)
    (copy / "config.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    (copy / "judgements.jsonl").write_bytes((run_dir / "judgements.jsonl").read_bytes())
    return copy


def other_rubric(settings: dict[str, Any]) -> None:
    settings["rubric"]["description"] = "Something else is rated."


def other_prompts(settings: dict[str, Any]) -> None:
    settings["prompt_templates"] = "0123456789ab"


def other_data(settings: dict[str, Any]) -> None:
    settings["inputs_sha256"]["ratings"] = "0" * 64


def no_analyst(settings: dict[str, Any]) -> None:
    settings["judges"] = [judge for judge in settings["judges"] if judge["id"] != "analyst"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (other_rubric, "was judged by the rubric cgpst@"),
        (other_prompts, "made with the prompt templates 0123456789ab"),
        (other_data, "has changed since the run"),
        (no_analyst, "none of its judges has an analyst"),
    ],
)
def test_runs_that_do_not_fit_are_refused_by_name(
    change: Callable[[dict[str, Any]], None], words: str, run_dir: Path, tmp_path: Path
) -> None:
    run = changed(run_dir, tmp_path / "copy", change)
    with pytest.raises(UserError, match=words) as found:
        collect_runs([run], tmp_path / "traces")
    assert str(run) in str(found.value)
    assert not (tmp_path / "traces").exists()


def test_other_faults_of_collecting(run_dir: Path, simulation: Path, tmp_path: Path) -> None:
    for runs, settings, words in (
        ([], {}, "no run to collect from"),
        ([tmp_path], {}, "has no config.yaml"),
        ([run_dir], {"judges": ["plain"]}, "no judge plain with an analyst; it has analyst"),
        ([run_dir], {"splits": str(tmp_path / "none.json")}, "no such file"),
    ):
        with pytest.raises(UserError, match=words):
            collect_runs(runs, tmp_path / "traces", **settings)
    with pytest.raises(UserError, match="synth-cgpst"):
        collect_oracle(tmp_path, tmp_path / "traces")
    with pytest.raises(UserError, match="already holds files"):
        collect_oracle(simulation, run_dir)
    (tmp_path / "other.json").write_text(json.dumps({"scenario": {"train": ["X1"], "test": ["X2"]}}))
    with pytest.raises(UserError, match=rf"scenario names none of the {len(RESPONSES)} answers; .* of other data"):
        collect_runs([run_dir], tmp_path / "traces", splits=str(tmp_path / "other.json"))


@pytest.mark.parametrize(("held_out", "words"), [(len(RESPONSES), ""), (2, f", the other {len(RESPONSES) - 2} in")])
def test_a_run_on_the_test_part_is_refused_as_such(held_out: int, words: str, run_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "splits.json"
    test = [response.id for response in RESPONSES[:held_out]]
    path.write_text(json.dumps({"scenario": {"train": ["X1"], "test": test}}))
    with pytest.raises(UserError) as found:
        collect_runs([run_dir], tmp_path / "traces", splits=str(path))
    of = f"of the {len(RESPONSES)} answers none is in train of scenario, {held_out} in test{words}"
    assert of in str(found.value)
    assert "nothing is learned from a test; take answers of the training part" in str(found.value)
    assert not (tmp_path / "traces").exists()


def test_a_test_id_in_the_traces_is_refused(simulation: Path, tmp_path: Path) -> None:
    collect_oracle(simulation, tmp_path / "traces")
    data = SotSettings(rubric="cgpst", traces=str(tmp_path / "traces"), splits=str(simulation / SPLITS))
    with pytest.raises(UserError, match="60 test ids of"):
        load_parts(data)


# -- filter


def edited(trace: Trace, item: int | None, **texts: str) -> Trace:
    """The trace with other texts, of one item or of the step."""
    part = trace.evidence
    if item is None:
        part = part.model_copy(update={"texts": {**part.texts, **texts}})
    else:
        items = [{**row, **texts} if number == item else row for number, row in enumerate(part.items, 1)]
        part = part.model_copy(update={"items": tuple(items)})
    return trace.model_copy(update={"evidence": part})


def reasons(traces: list[Trace], config: FilterConfig = CONFIG) -> list[tuple[str, str, int | None, str]]:
    found = filter_traces(traces, CGPST, config)
    assert sum(trace.parts for trace in found.kept) + len(found.dropped) == found.before
    return [(drop.reason, drop.trace.step, drop.item, drop.detail) for drop in found.dropped]


def test_the_oracle_is_kept() -> None:
    assert reasons(oracle_traces()) == []


def test_not_schema_valid() -> None:
    one, two = oracle_traces(1)[:2]
    cut = one.model_copy(
        update={
            "evidence": one.evidence.model_copy(update={"items": one.evidence.items[:7]}),
            "items": tuple(range(1, 8)),
        }
    )
    faults = reasons([cut, edited(one, 2, category="Nothing known"), edited(two, None, purpose=" ")])
    assert [fault[:3] for fault in faults] == [
        *[(filters.SCHEMA, "step1", item) for item in range(1, 8)],
        (filters.SCHEMA, "step1", 2),
        (filters.SCHEMA, "step2", None),
    ]
    assert faults[0][3] == "7 items in place of 8"
    assert faults[-2][3] == "'Nothing known' is none of the names of category"
    assert faults[-1][3] == "nothing on purpose"


def test_ungrounded_items_go_and_blank_ones_need_no_quotation() -> None:
    one = oracle_traces(1)[0]
    faults = reasons([edited(one, 3, fluency='"words that nobody wrote"'), edited(one, 4, fluency="counts")])
    assert [fault[:3] for fault in faults] == [(filters.UNGROUNDED, "step1", 3), (filters.UNGROUNDED, "step1", 4)]
    lines = [line for line in one.response.splitlines() if not line.startswith("5. ")]
    blank = edited(one.model_copy(update={"response": "\n".join(lines)}), 5, fluency="left empty")
    assert not [fault for fault in reasons([blank]) if fault[2] == 5]
    assert reasons(oracle_traces(1), FilterConfig(no_choice=CONFIG.no_choice))[0][:2] == (filters.UNGROUNDED, "step5")


def test_made_up_names_and_numbers() -> None:
    one, two = oracle_traces(1)[:2]
    bad = edited(one, 1, elaboration="tells of Zanzibar and of 4711 boats")
    memory = two.model_copy(update={"evidence": two.evidence.model_copy(update={"memory": "about Zanzibar"})})
    assert reasons([bad, memory]) == [
        (filters.UNFOUNDED, "step1", 1, "4711, Zanzibar"),
        (filters.UNFOUNDED, "step2", None, "memory: Zanzibar"),
    ]
    assert reasons([bad, memory], CONFIG.model_copy(update={"names_and_numbers": False})) == []


def test_far_from_any_rater() -> None:
    two = oracle_traces(1)[1].model_copy(
        update={
            "human": {"rater1": {"step2.focus": 5.0, "step2.purpose": 3.0}, "rater2": {"step2.focus": 8.0}},
            "judged": {"step2.focus": 6.0, "step2.purpose": 3.0},
        }
    )
    config = CONFIG.model_copy(update={"max_distance": 0.2})  # 1.8 of 9
    assert reasons([two], config) == [
        (filters.FAR, "step2", None, "step2.focus: judged 6.00, rater2 gave 8 of 1 to 10")
    ]
    assert reasons([two], CONFIG.model_copy(update={"max_distance": 0.23})) == []
    assert reasons([two.model_copy(update={"judged": {}})], config) == []


def test_inconsistent_over_repeats() -> None:
    two = oracle_traces(1)[1]
    repeats = [
        two.model_copy(update={"repeat": number, "judged": {"step2.focus": score}})
        for number, score in enumerate((4, 6, 7))
    ]
    config = CONFIG.model_copy(update={"max_spread": 0.3})  # 2.7 of 9
    found = reasons(repeats, config)
    assert found == [(filters.INCONSISTENT, "step2", None, "step2.focus: 4.00 to 7.00 over 3 repeats")] * 3
    assert reasons(repeats[:2], config) == []
    assert reasons([trace.model_copy(update={"teacher": str(trace.repeat)}) for trace in repeats], config) == []


def test_near_duplicates() -> None:
    one, *others = oracle_traces(2)
    again = edited(one, 8, originality="what comes to mind first").model_copy(update={"repeat": 1})
    config = CONFIG.model_copy(update={"max_similarity": 0.9})
    found = reasons([one, *others, again], config)
    assert {fault[:2] for fault in found} == {(filters.DUPLICATE, "step1")}
    assert len(found) == 8
    assert found[0][3] == f"of {one.sample_id}, repeat 0"


def test_similarity_is_the_share_of_common_shingles() -> None:
    texts = ["a b c d e f g", "A b, c d e f g!", "a b c d e f h", "x", "x", "a b c d e"]
    assert near_duplicates(texts, 1.0) == {1: 0, 4: 3}
    assert near_duplicates(texts, 0.5) == {1: 0, 2: 0, 4: 3}  # two of four shingles are common


def test_too_long(tmp_path: Path) -> None:
    model = str(write_model(tmp_path / "model"))  # a token per character
    one, two = oracle_traces(1)[:2]
    traces = [edited(one, 6, elaboration="x" * 301), two]
    config = CONFIG.model_copy(update={"tokenizer": model, "max_text_tokens": 300})
    assert reasons(traces, config) == [(filters.LENGTH, "step1", 6, "elaboration: 301 tokens, 300 at most")]
    memory = CONFIG.model_copy(update={"tokenizer": model, "max_memory_tokens": 10})
    assert reasons([two], memory)[0][:2] == (filters.LENGTH, "step2")
    response = CONFIG.model_copy(update={"tokenizer": model, "max_response_tokens": 10})
    assert reasons([two], response)[0][3].startswith("response: ")


def test_settings_that_cannot_filter() -> None:
    with pytest.raises(UserError, match="the rubric has no step step9"):
        filter_traces([], CGPST, FilterConfig(unquoted_steps=("step9",)))
    with pytest.raises(UserError, match="tokenizer is missing"):
        filter_traces([], CGPST, FilterConfig(max_text_tokens=9))


def test_a_filtered_folder_says_what_was_dropped(tmp_path: Path) -> None:
    write_files(tmp_path / "data")
    bad = tmp_path / "data" / "simulated_evidence.json"
    text = bad.read_text(encoding="utf-8")
    bad.write_text(text.replace('\\"in the tub\\"', "nothing quoted", 1), encoding="utf-8")
    collect_oracle(tmp_path / "data", tmp_path / "all")
    found, info = filter_folder(tmp_path / "all", FilterConfig(), tmp_path / "kept")
    assert found.by_reason == info.dropped == {filters.UNGROUNDED: 1}
    stored, traces = read_traces(tmp_path / "kept")
    assert stored.counts["parts"] == 4 * 24 - 1
    assert traces[0].items == (2, 3, 4, 5, 6, 7, 8)
    dropped = [json.loads(line) for line in (tmp_path / "kept" / "dropped.jsonl").read_text().splitlines()]
    assert [(row["sample_id"], row["step"], row["item"], row["reason"]) for row in dropped] == [
        (IDS[0], "step1", 1, filters.UNGROUNDED)
    ]
    assert dropped[0]["evidence"]["fluency"] == "nothing quoted"
    # A dropped item has no texts in the file that a judge learns from.
    rows = read_evidence(tmp_path / "kept" / "evidence.json", CGPST)[IDS[0]][0].items
    assert rows[0] == {}
    assert rows[1:] == evidence()[0].items[1:]
    assert (
        "Dropped parts by the first reason that applies: ungrounded 1." in (tmp_path / "kept" / "README.md").read_text()
    )
    with pytest.raises(UserError, match="no trace is left"):
        filter_folder(
            tmp_path / "all",
            FilterConfig(max_text_tokens=1, tokenizer=str(write_model(tmp_path / "m"))),
            tmp_path / "none",
        )
    assert not (tmp_path / "none").exists()


def test_damaged_folders_are_refused(tmp_path: Path) -> None:
    write_files(tmp_path / "data")
    collect_oracle(tmp_path / "data", tmp_path / "all")
    path = tmp_path / "all" / INFO
    sound = json.loads(path.read_text())
    path.write_text(json.dumps({**sound, "rubric_digest": "000000000000"}))
    with pytest.raises(UserError, match="not the 000000000000 of the traces"):
        read_traces(tmp_path / "all")
    path.write_text(json.dumps({**sound, "prompts": "000000000000"}))
    with pytest.raises(UserError, match="traces of the prompt templates 000000000000"):
        filter_folder(tmp_path / "all", FilterConfig(), tmp_path / "kept")
    path.write_text("{")
    with pytest.raises(UserError, match="not valid JSON"):
        read_traces(tmp_path / "all")
    path.write_text(json.dumps(sound))
    next((tmp_path / "all").glob("*.arrow")).write_bytes(b"no table")
    with pytest.raises(UserError, match="the table cannot be read"):
        read_traces(tmp_path / "all")


def test_evidence_without_items_is_plain_data() -> None:
    part = StepEvidence(step="step2", texts={"purpose": "x"})
    trace = oracle_traces(1)[1].model_copy(update={"evidence": part})
    assert (trace.parts, trace.whole) == (1, True)
    assert trace.sample.responses == {"step2": trace.response}


# -- splits, folds and the commands


def test_splits_and_folds_are_seeded_and_whole() -> None:
    samples = [as_sample(response) for response in simulated(200)]
    splits = make_splits(samples, 0)
    assert splits == make_splits(list(samples), 0) != make_splits(samples, 1)
    ids = {sample.id for sample in samples}
    for sides in splits.values():
        assert set(sides["train"]) | set(sides["test"]) == ids
        assert (len(sides["train"]), len(sides["test"])) == (140, 60)
    train = [sample for sample in samples if sample.id in set(splits["scenario"]["train"])]
    refuse_overlap(train, set(splits["scenario"]["test"]), "test", "training")
    scenarios = {sample.scenario_id for sample in train}
    assert len(scenarios) == 7
    folds = make_folds(train, 2, "scenario", 0)
    assert list(folds) == ["fold0", "fold1"]
    assert folds["fold0"]["test"] == folds["fold1"]["train"]
    assert set(folds["fold0"]["test"]) | set(folds["fold1"]["test"]) == {sample.id for sample in train}
    by_id = {sample.id: sample.scenario_id for sample in train}
    assert not {by_id[name] for name in folds["fold0"]["test"]} & {by_id[name] for name in folds["fold1"]["test"]}
    with pytest.raises(UserError, match="give a number from 2 to 7"):
        make_folds(train, 8, "scenario", 0)


def command(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    monkeypatch.setattr("sys.argv", ["training", *map(str, words)])
    try:
        return main()
    except SystemExit as stop:
        return int(stop.code or 0)


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_files(tmp_path / "data")
    config = tmp_path / "data.yaml"
    config.write_text(yaml.safe_dump({"rubric": "cgpst", "benchmark": benchmark(folder)}))
    splits = tmp_path / "splits.json"
    assert command(monkeypatch, "split", "--benchmark-config", config, "--seed", 0, "--out", splits) == 0
    assert set(json.loads(splits.read_text())) == {"scenario", "sample"}
    assert command(monkeypatch, "split", "--benchmark-config", config, "--out", splits) == 2
    assert "a split stays fixed" in capsys.readouterr().err
    folds = ("--split", "sample", "--by", "sample", "--out", tmp_path / "folds.json")
    assert command(monkeypatch, "folds", "--benchmark-config", config, "--splits", splits, *folds) == 0
    assert set(json.loads((tmp_path / "folds.json").read_text())) == {"fold0", "fold1"}
    kept = ("--splits", splits, "--out", tmp_path / "all")
    assert command(monkeypatch, "traces", "collect", "--oracle", folder, *kept) == 0
    (tmp_path / "filter.yaml").write_text("names_and_numbers: true\nunquoted_steps: [step1]\n")
    filtered = ("--config", tmp_path / "filter.yaml", "--out", tmp_path / "kept")
    assert command(monkeypatch, "traces", "filter", tmp_path / "all", *filtered) == 0
    assert command(monkeypatch, "traces", "show", tmp_path / "kept", "--count", 1) == 0
    said = capsys.readouterr().out
    assert '1. fluency: "in the tub"' in said
    assert command(monkeypatch, "traces", "show", tmp_path / "all", "--dropped") == 2
    assert command(monkeypatch, "traces", "collect", "--oracle", folder, "x", "--out", tmp_path / "y") == 2
    assert command(monkeypatch, "traces", "show", tmp_path / "kept", "--sample", "X") == 2


def test_a_judging_run_becomes_traces_too(tmp_path: Path) -> None:
    """Of `inference judge`, whose saved settings name the responses' file and its columns."""
    root = Path(__file__).parents[2]
    config = {
        "rubric": "cgpst",
        "input": str(root / "eval/benchmarks/samples/cgpst_simulated.jsonl"),
        "judges": {"id": "drawn", "engine": "scripted", "model": "x", "method": "creaeval"},
        "out": str(tmp_path / "judged"),
    }
    (tmp_path / "judge.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    judge_file(tmp_path / "judge.yaml")
    collect_runs([tmp_path / "judged"], tmp_path / "traces")
    _, traces = read_traces(tmp_path / "traces")
    assert len({trace.sample_id for trace in traces}) == 3
