"""What servers and models send besides good answers: odd log-probabilities, half characters, refusals, half answers."""

import json
import math
from collections.abc import Callable
from typing import Any

import pytest
from scripted_methods import CGPST, as_sample, labelled, run, simulated, text_of

from inference import prompts
from inference.answers import read_evidence, read_evidence_line, read_scores, read_table
from inference.engines.openai_answers import read_chat, read_text
from inference.methods.evidence import nothing
from inference.records import Call, Completion, Message, Sample, StepEvidence, Token
from inference.rubric import Dimension, Rubric, Step
from inference.scoring import read_number_answer

WHOLE = Dimension(name="fit", description="How well it fits.", range=(1, 5))
PICK = Step(name="pick", task="Pick.", dimensions=(WHOLE,))
SAMPLE = as_sample(simulated(1)[0])
STEPS = [step.name for step in CGPST.answered]
HALF = "\ud83d"


def value_of(*parts: tuple[str, dict[str, float]]) -> tuple[float | None, bool]:
    """Value of ``{"pick": {"fit": …}}`` whose number is made of `parts`, and whether it has a distribution."""
    whole = [('{"pick": {"fit": ', {}), *parts]
    tokens = tuple(Token(text=text, logprob=-0.1, top=top) for text, top in whole)
    (score,) = read_scores([PICK], Completion(text="".join(text for text, _ in whole), tokens=tokens))
    return score.value, score.distribution is not None


END = ("}}", dict[str, float]())
HALVES = {"4": math.log(0.5), "2": math.log(0.5)}


@pytest.mark.parametrize(
    ("parts", "value", "distribution"),
    [
        ([("4", HALVES), END], 3.0, True),
        ([("4", {**HALVES, "5": math.nan, "1": 1000.0, "3": math.inf}), END], 3.0, True),
        ([("4}", {"4}": -0.1, "2": -0.1}), ("}", {})], 4.0, False),
        ([("4", {"2": -0.1}), END], 4.0, False),
        ([("4", {"4": math.nan, "2": -0.1}), END], 4.0, False),
        ([("4", {"4": -math.inf, "2": -0.1}), END], 4.0, False),
        ([("4", {"4": 1000.0}), END], 4.0, False),
        ([("4", HALVES), (".0", {}), END], 4.0, False),
        ([("4.0", {"4.0": -0.1, "2": -0.1}), END], 4.0, False),
    ],
)
def test_alternatives_count_only_beside_the_number_that_is_written(
    parts: list[tuple[str, dict[str, float]]], value: float, distribution: bool
) -> None:
    found, has_distribution = value_of(*parts)
    assert found == pytest.approx(value)
    assert has_distribution == distribution


@pytest.mark.parametrize("grid", [{"2": -0.1}, {"4": math.nan, "2": -0.1}, {"4": 1000.0}, {"4": -math.inf}, {}])
def test_a_lone_number_without_a_log_probability_of_its_own_stands_as_it_is(grid: dict[str, float]) -> None:
    score = read_number_answer("pick", WHOLE, Completion(text="4", grid_logprobs=grid))
    assert (score.value, score.distribution, score.unscored) == (4.0, None, None)


def test_no_log_probability_that_is_none_reaches_a_completion() -> None:
    call = Call(messages=(Message(role="user", content="Rate it."),), grid=WHOLE.grid)
    top: list[tuple[str, object]] = [("4", -0.5), ("3", None), ("2", math.nan), ("1", 7.0)]
    entry = {"token": "4", "logprob": -0.5, "top_logprobs": [{"token": text, "logprob": value} for text, value in top]}
    choice = {"message": {"content": "4"}, "finish_reason": "stop", "logprobs": {"content": [entry]}}
    assert read_chat(call, {"choices": [choice]}).grid_logprobs == {"4": -0.5}
    logprobs = {"tokens": ["4"], "token_logprobs": [-0.5], "top_logprobs": [dict(top)]}
    assert read_text(call, {"choices": [{"text": "4", "logprobs": logprobs}]}).grid_logprobs == {"4": -0.5}
    unknown = {"tokens": ["4"], "token_logprobs": [-9999.0], "top_logprobs": [{"3": -0.5}]}
    assert read_text(call, {"choices": [{"text": "4", "logprobs": unknown}]}).grid_logprobs is None


def test_a_refusal_is_never_scored() -> None:
    def refused(text: str, **more: object) -> Completion:
        return Completion.model_validate({"text": text, "finish_reason": "refusal", **more})

    (score,) = read_scores([PICK], refused('{"pick": {"fit": 4}}'))
    assert score.value is None
    assert "the model refused to answer" in str(score.unscored)
    lone = read_number_answer("pick", WHOLE, refused("4", grid_logprobs={"4": -0.1}))
    assert (lone.value, lone.top) == (None, None)
    assert "the model refused to answer" in str(lone.unscored)
    assert "the model refused to answer" in str(read_evidence_line(PICK, refused("It fits.")))


def test_a_fenced_answer_may_hold_any_line_separator() -> None:
    content = '{"evidence": {"fit": "one\u2028two\x85three"}, "memory": "m"}'
    found = read_evidence([PICK], Completion(text=f"```json\r\n{content}\r\n```"))["pick"]
    assert isinstance(found, StepEvidence), found
    assert found.texts == {"fit": "one\u2028two\x85three"}


def test_half_characters_are_replaced_where_texts_are_read() -> None:
    answer = '{"evidence": {"fit": "a \\ud83d b \\ud83d\\ude00"}, "memory": "m \\ude00"}'
    found = read_evidence([PICK], Completion(text=answer))["pick"]
    assert found == StepEvidence(step="pick", texts={"fit": "a \ufffd b 😀"}, memory="m \ufffd")
    table = '{"pick": {"evidence": "\\ud83d", "fit": 4}}'
    rubric = Rubric(name="p", description="P.", steps=(PICK,))
    assert read_table(rubric, Completion(text=table))[1] == (StepEvidence(step="pick", texts={"fit": "\ufffd"}),)
    assert read_evidence_line(PICK, Completion(text=f"a {HALF}")) == {"fit": "a \ufffd"}
    for message in (prompts.assistant(HALF), prompts.complaint_message(HALF)):
        assert "\ufffd" in message.content
        message.content.encode()


@pytest.mark.parametrize("method", ["cot", "got", "tat", "creaeval"])
def test_half_characters_of_a_model_reach_no_call(method: str) -> None:
    def reply(call: Call, number: int) -> Completion:
        text = labelled(call, number).text.replace(" of call", f" {HALF} of call")
        return Completion(text=text + ("" if number % 3 else " no JSON"))

    found = run(CGPST, SAMPLE, reply, method=method)
    assert len(found.calls) > 1
    for call in found.calls:
        text_of(call).encode()


def halves(first: Callable[[str], str], second: str, at: int = 0) -> Callable[[Call, int], Completion]:
    """The answer to call `at` is changed, the one after it `second`; all others are good."""

    def reply(call: Call, number: int) -> Completion:
        good = labelled(call, number)
        if number == at:
            return Completion(text=first(good.text))
        return Completion(text=second) if number == at + 1 else good

    return reply


def one_bad_score(text: str) -> str:
    assert '"cp": 0' in text
    return text.replace('"cp": 0', '"cp": 9', 1)


@pytest.mark.parametrize(
    ("options", "at"),
    [
        ({"method": "direct"}, 0),
        ({"method": "tat"}, 0),
        ({"method": "cot"}, 1),
        ({"method": "creaeval"}, 6),
        ({"method": "creaeval", "judge_scope": "step"}, 7),
    ],
)
def test_a_useless_second_answer_leaves_what_the_first_gave(options: dict[str, Any], at: int) -> None:
    good = run(CGPST, SAMPLE, **options)
    found = run(CGPST, SAMPLE, halves(one_bad_score, "Sorry, no.", at), **options)
    assert len(found.calls) == len(good.calls) + 1
    lost = [score.key for score in found.answers.scores if score.unscored]
    assert lost == ["step2.condition_phrase"]
    assert len(found.answers.evidence) == len(good.answers.evidence)


def test_the_second_reading_of_a_score_comes_first() -> None:
    def second(call: Call, number: int) -> Completion:
        text = labelled(call, number).text
        return Completion(text=one_bad_score(text) if number == 0 else text.replace('"kv": 0', '"kv": 2', 1))

    scores = {score.key: score for score in run(CGPST, SAMPLE, second, method="direct").answers.scores}
    assert scores["step2.condition_phrase"].value == 0
    assert scores[_key("kv")].value == 2


def _key(short: str) -> str:
    step = CGPST.answered[1]
    return next(f"{step.name}.{dimension.name}" for dimension in step.asked if dimension.short == short)


def test_the_conversation_goes_on_from_the_answer_that_was_used() -> None:
    found = run(CGPST, SAMPLE, halves(one_bad_score, "Sorry, no.", 1), method="cot")
    assert "notes of call 1" in text_of(found.calls[3])
    assert "Sorry, no." not in text_of(found.calls[3])


def test_evidence_in_one_answer_is_kept_step_by_step() -> None:
    def without_step3(text: str) -> str:
        content = json.loads(text)
        del content["step3"]
        return json.dumps(content)

    found = run(CGPST, SAMPLE, halves(without_step3, "Sorry, no."), method="creaeval", stepwise=False)
    assert set(found.unscored()) == {"step3"}
    assert [part.step for part in found.answers.evidence] == [name for name in STEPS if name != "step3"]


def test_all_evidence_in_one_call_asks_about_what_is_written_alone() -> None:
    empty = SAMPLE.model_copy(update={"responses": {**SAMPLE.responses, "step2": " \n", "step5": ""}})
    found = run(CGPST, empty, method="creaeval", stepwise=False)
    written = [name for name in STEPS if name not in ("step2", "step5")]
    assert list((found.calls[0].json_schema or {})["properties"]) == written
    assert [part.step for part in found.answers.evidence] == STEPS
    assert found.answers.evidence[1] == nothing(CGPST.answered[1])
    assert not found.unscored()


def test_nothing_written_is_not_put_to_the_analyst() -> None:
    empty = Sample(id="s", scenario=SAMPLE.scenario, responses=dict.fromkeys(STEPS, ""))
    found = run(CGPST, empty, method="creaeval", stepwise=False)
    assert found.models == ["judge"]
    assert not found.unscored()
