"""An analyst on a tiny random Llama: traces → rows → training → evidence written and read back; audit, kill, resume."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

torch = pytest.importorskip("torch")
pytest.importorskip("trl")

from scripted_methods import CGPST, run  # noqa: E402
from tiny_model import write_model  # noqa: E402
from trace_files import IDS, benchmark, evidence, write_files  # noqa: E402

from eval.benchmarks.cgpst.exchange import read_evidence  # noqa: E402
from eval.benchmarks.simulation.files import SPLITS  # noqa: E402
from eval.evidence import Quality  # noqa: E402
from inference.adapter_notes import read_analyst  # noqa: E402
from inference.adapters import read_adapter  # noqa: E402
from inference.answers import read_evidence as read_json_evidence  # noqa: E402
from inference.answers import read_evidence_line  # noqa: E402
from inference.errors import UserError  # noqa: E402
from inference.judges import ModelConfig  # noqa: E402
from inference.records import Completion  # noqa: E402
from inference.tokens import load_tokenizer  # noqa: E402
from training import sot  # noqa: E402
from training.checkpoints import newest_complete  # noqa: E402
from training.sot_rows import IGNORED, SotRow, audit, build_rows, chat_calls, compact_calls, prompt_version  # noqa: E402
from training.sources import SourceConfig  # noqa: E402
from training.traces.collect import collect_oracle  # noqa: E402
from training.traces.filter import FilterConfig, filter_folder  # noqa: E402
from training.traces.records import INFO, Trace, read_traces, step_of  # noqa: E402
from training.traces.write import merge, write_fold  # noqa: E402

torch.set_num_threads(1)


def prepare(folder: Path) -> Path:
    """Files, traces of the training scenario, a model and two folds."""
    write_files(folder / "data")
    collect_oracle(folder / "data", folder / "all", splits=str(folder / "data" / SPLITS))
    filter_folder(folder / "all", FilterConfig(), folder / "traces")
    sides = {"train": [IDS[0]], "test": [IDS[1]]}
    (folder / "folds.json").write_text(json.dumps({"fold0": sides, "fold1": {"train": [IDS[1]], "test": [IDS[0]]}}))
    write_learner(folder / "model")
    return folder


def write_learner(folder: Path) -> None:
    """A tiny model whose end token can be learned: transformers makes the embedding of a padding token zeros."""
    from transformers import LlamaForCausalLM

    write_model(folder, hidden=64)
    model = LlamaForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        torch.nn.init.normal_(model.get_input_embeddings().weight[model.config.eos_token_id], std=0.3)
    model.save_pretrained(folder)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(tmp_path_factory.mktemp("sot"))


def write_config(made: Path, out: Path, **changes: Any) -> Path:
    settings = {
        "rubric": "cgpst",
        "traces": str(made / "traces"),
        "splits": str(made / "data" / SPLITS),
        "max_row_tokens": 512,
        "model_name_or_path": str(made / "model"),
        "use_peft": True,
        "lora_r": 16,
        "lora_alpha": 32,
        "lora_target_modules": "all-linear",
        "max_steps": 6,
        "per_device_train_batch_size": 8,
        "learning_rate": 1e-2,
        "logging_steps": 1,
        "use_cpu": True,
        "bf16": False,
        "gradient_checkpointing": False,
        "dataloader_pin_memory": False,
        "save_strategy": "no",
        "disable_tqdm": True,
        "report_to": "none",
        "output_dir": str(out),
        **changes,
    }
    path = out.with_name(out.name + ".yaml")
    path.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return path


def train(config: Path) -> int:
    return sot.main(["--config", str(config)])


def losses(out: Path) -> dict[int, float]:
    lines = [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return {line["step"]: line["loss"] for line in lines if "loss" in line}


def traces(made: Path) -> list[Trace]:
    return read_traces(made / "traces")[1]


def written(made: Path, adapter: Path, out: Path, fold: str = "fold0", **settings: Any) -> dict[str, Quality]:
    model = ModelConfig(engine="hf", model=str(read_adapter(adapter).base_model), adapter=str(adapter))
    source = SourceConfig(rubric=CGPST, benchmark=benchmark(made / "data")).load()
    return write_fold(model, source, str(made / "folds.json"), fold, out, FilterConfig(), quiet=True, **settings)


def test_trained_evidence_is_written_and_read_back(made: Path, tmp_path: Path) -> None:
    """Trained on one fold until it knows the evidence by heart, the analyst writes it on the other fold."""
    out = tmp_path / "out"
    fold = {"folds": str(made / "folds.json"), "fold": "fold0"}
    assert train(write_config(made, out, max_steps=150, **fold)) == 0
    assert losses(out)[150] < 0.05 < losses(out)[1]
    note = read_analyst(out / "adapter")
    assert note.trained_on == (IDS[0],)
    assert note.simulated
    files = {path.name for path in (out / "adapter").iterdir()}
    wanted = {"README.md", "adapter_config.json", "adapter_model.safetensors", "base_model.json", "analyst.json"}
    assert files == wanted
    card = (out / "adapter" / "README.md").read_text(encoding="utf-8")
    for words in ("**Trained on simulated data.**", "the oracle analyst", "fold0", note.prompts, CGPST.digest):
        assert words in card

    found = written(made, out / "adapter", tmp_path / "written")
    asked = {name: (part.asked, part.valid, part.grounded) for name, part in found.items()}
    counts = {"step1": 8, "step2": 1, "step3": 8, "step4": 5, "step5": 1, "step6": 1}
    assert asked == {step: (count, count, count) for step, count in counts.items()}
    read = read_evidence(tmp_path / "written" / "evidence.json", CGPST)
    assert list(read) == [IDS[1]]
    assert {part.step: (part.texts, part.items) for part in read[IDS[1]]} == {
        part.step: (part.texts, part.items) for part in evidence()
    }

    # What it has learned from it must not write on.
    with pytest.raises(UserError, match="has learned from 1 of the answers"):
        written(made, out / "adapter", tmp_path / "other", fold="fold1")
    assert not (tmp_path / "other").exists()
    # The same command goes on: all calls are finished, so nothing is computed.
    assert written(made, out / "adapter", tmp_path / "written", build=_Unbuilt) == found
    with pytest.raises(UserError, match="and so has a file before it"):
        merge([tmp_path / "written" / "evidence.json"] * 2, tmp_path / "merged.json", CGPST)
    assert merge([tmp_path / "written" / "evidence.json"], tmp_path / "merged.json", CGPST) == 1


class _Unbuilt:
    """An engine with the identity of the first one that answers nothing."""

    def __init__(self, config: Any) -> None:
        from inference.engines.hf import HFEngine

        self.identity = HFEngine(config).identity

    async def complete(self, call: Any) -> Completion:
        raise AssertionError("a finished call was sent again")

    async def close(self) -> None:
        """Nothing to release."""


def test_an_adapter_of_other_prompts_or_none_is_refused(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert train(write_config(made, out, max_steps=1, folds=str(made / "folds.json"), fold="fold0")) == 0
    note = json.loads((out / "adapter" / "analyst.json").read_text())
    for change, words in (
        ({"prompts": "0" * 12}, "trained on the prompts 000000000000"),
        ({"rubric": "cgpst@000000000000"}, "trained for the rubric cgpst@000000000000"),
    ):
        (out / "adapter" / "analyst.json").write_text(json.dumps({**note, **change}))
        with pytest.raises(UserError, match=words):
            written(made, out / "adapter", tmp_path / "w")
    (out / "adapter" / "analyst.json").unlink()
    with pytest.raises(UserError, match="no analyst's"):
        written(made, out / "adapter", tmp_path / "w")


def test_killed_while_saving_it_resumes_to_the_uninterrupted_loss(made: Path, tmp_path: Path) -> None:
    settings = {"max_steps": 8, "save_strategy": "steps", "save_steps": 2}
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert train(write_config(made, whole, **settings)) == 0
    config = write_config(made, parts, **settings)
    command = [sys.executable, str(Path(__file__).with_name("kill_sot.py")), str(config), "6"]
    root = Path(__file__).parents[2]
    killed = subprocess.run(command, capture_output=True, text=True, cwd=root, timeout=200, env=_environment(root))
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-2000:]
    assert (parts / "checkpoint-6").exists()
    found = newest_complete(parts)
    assert found is not None
    assert found.name == "checkpoint-4"
    assert train(config) == 0
    assert list(losses(parts)) == list(losses(whole)) == list(range(1, 9))
    for step, loss in losses(whole).items():
        assert losses(parts)[step] == pytest.approx(loss, abs=1e-6)
    weights = [(out / "adapter" / "adapter_model.safetensors").read_bytes() for out in (whole, parts)]
    assert weights[0] == weights[1]


def _environment(root: Path) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(root), "HF_HUB_OFFLINE": "1"}


def test_loss_falls_on_evidence_and_end_token_alone(made: Path) -> None:
    tokenizer = load_tokenizer(made / "model")
    for profile, read in (("compact", read_evidence_line), ("chat", None)):
        for row in build_rows(traces(made), CGPST, tokenizer, profile):
            taught = [token for token in row.labels if token != IGNORED]
            assert row.labels[-len(taught) :] == taught == row.input_ids[-row.taught :]
            assert taught[-1] == tokenizer.eos_token_id
            assert tokenizer.eos_token_id not in taught[:-1]
            answer = Completion(text=tokenizer.decode(taught[:-1]))
            step = step_of(CGPST, row.step)
            of_step = next(part for part in evidence() if part.step == row.step)
            if read is not None:
                assert read(step, answer) == (of_step.items[row.item - 1] if row.item else of_step.texts)
            else:
                assert read_json_evidence([step], answer) == {row.step: of_step}


def test_rows_are_what_is_served(made: Path) -> None:
    """The prompts of the rows are the calls of the methods, in their order."""
    first = [trace for trace in traces(made) if trace.sample_id == IDS[0]]
    sample = next(
        s for s in SourceConfig(rubric=CGPST, benchmark=benchmark(made / "data")).load().samples if s.id == IDS[0]
    )
    expected = [call for trace in first for call in compact_calls(trace, CGPST, step_of(CGPST, trace.step))]
    answers = {call.prompt: answer for _, call, answer in expected}

    def reply(call: Any, _: int) -> Completion:
        return Completion(text=call.grid[0] if call.grid else answers[call.prompt])

    served = run(CGPST, sample, reply, method="compact_creaeval")
    asked = [call.prompt for call, model in zip(served.calls, served.models, strict=True) if model == "analyst"]
    assert asked == [call.prompt for _, call, _ in expected]

    chat = [call for trace in first for call in chat_calls(trace, CGPST, step_of(CGPST, trace.step))]
    messages = {call.messages: answer for _, call, answer in chat}

    def reply_chat(call: Any, _: int) -> Completion:
        return Completion(text=messages.get(call.messages, "{}"))

    served = run(CGPST, sample, reply_chat, method="creaeval")
    asked_chat = [call.messages for call, model in zip(served.calls, served.models, strict=True) if model == "analyst"]
    assert asked_chat == [call.messages for _, call, _ in chat]


def test_audit_counts_and_stops() -> None:
    rows = [SotRow("a", "step1", 1, [1] * length, taught=3) for length in (10, 20, 300)]
    kept, count = audit(rows, 100, "train")
    assert kept == rows[:2]
    assert (count["rows"], count["too_long"], count["tokens"], count["supervised"]) == (2, 1, 30, 6)
    with pytest.raises(UserError, match="longer than max_row_tokens 5"):
        audit(rows, 5, "train")
    with pytest.raises(UserError, match=r"a, step2: the row has no evidence to learn"):
        audit([*rows, SotRow("a", "step2", None, [1, 2, 3], taught=1)], 100, "train")


def test_incomplete_evidence_says_to_filter(made: Path) -> None:
    tokenizer = load_tokenizer(made / "model")
    part = traces(made)[1]
    cut = part.evidence.model_copy(update={"texts": {"purpose": "ok"}})
    for profile in ("compact", "chat"):
        with pytest.raises(UserError, match="filter the traces first"):
            build_rows([part.model_copy(update={"evidence": cut})], CGPST, tokenizer, profile)


def test_a_dropped_item_teaches_nothing(made: Path) -> None:
    tokenizer = load_tokenizer(made / "model")
    part = traces(made)[0].model_copy(update={"items": (2, 5)})
    assert [row.item for row in build_rows([part], CGPST, tokenizer, "compact")] == [2, 5]
    with pytest.raises(UserError, match="no rows for the profile chat"):
        build_rows([part], CGPST, tokenizer, "chat")


def test_tokenizers_that_cannot_do_it_are_refused(made: Path) -> None:
    tokenizer = load_tokenizer(made / "model")
    tokenizer.chat_template = None
    build_rows(traces(made), CGPST, tokenizer, "compact")
    with pytest.raises(UserError, match="no chat template"):
        build_rows(traces(made), CGPST, tokenizer, "chat")
    tokenizer.eos_token = None
    with pytest.raises(UserError, match="no end token"):
        build_rows(traces(made), CGPST, tokenizer, "compact")


def test_prompt_version_follows_the_wording(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prompt_version(CGPST, "compact")
    assert before == prompt_version(CGPST, "compact") != prompt_version(CGPST, "chat")
    monkeypatch.setattr("inference.prompts.compact.SO_FAR", 1)
    assert prompt_version(CGPST, "compact") != before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"traces": "nowhere"}, "no traces.json there"),
        ({"rubric": "cgpst#purpose_0_2"}, "traces of the rubric cgpst@"),
        ({"rubric": "aut"}, "but the rubric is aut@"),
        ({"fold": "fold0"}, "folds and fold belong together"),
        ({"splits": None, "traces": "test"}, ""),
        ({"traces": "test"}, "2 test ids of"),
        ({"traces": "older"}, "traces of the prompt templates 0123456789ab"),
        ({"max_row_tokens": 600}, "reads 512 tokens at most"),
        ({"max_row_tokens": 9}, "longer than max_row_tokens 9"),
        ({"packing": True}, "packing and padding_free are not used"),
        ({"eval_strategy": "epoch"}, "give validation_share"),
        ({"model_name_or_path": "nowhere"}, "no model directory"),
        ({"expect_world_size": 2}, "expect_world_size is 2"),
    ],
)
def test_bad_input_is_one_sentence(
    changes: dict[str, Any], words: str, made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if changes.get("traces") == "test":
        changes = {**changes, "traces": str(tmp_path / "test")}
        collect_oracle(made / "data", tmp_path / "test")
    if changes.get("traces") == "older":
        changes = {"traces": str(tmp_path / "older")}
        (tmp_path / "older").mkdir()
        info = json.loads((made / "traces" / INFO).read_text())
        (tmp_path / "older" / INFO).write_text(json.dumps({**info, "prompts": "0123456789ab"}))
    out = tmp_path / "out"
    code = train(write_config(made, out, max_steps=1, **changes))
    said = capsys.readouterr().err
    if not words:
        assert code == 0  # without splits nothing says what the test is
        return
    assert code == 2
    line = next(line for line in said.splitlines() if line.startswith("error: "))
    assert words in line
    assert not (out / "adapter").exists()
