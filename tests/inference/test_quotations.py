"""No run of eight words of a response reaches the judge of evidence, whatever the analyst copies."""

import json
import random
import re
import time
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted_methods import CGPST, Run, as_sample, filled, run, simulated, text_of

from eval.benchmarks.cgpst.ratings import read_ratings
from eval.benchmarks.cgpst.samples import to_samples
from eval.benchmarks.cgpst.scenarios import read_scenarios
from inference import prompts
from inference.copies import LETTERS, LONG_TEXT, forbidden_runs
from inference.quotations import CUT, cut_across, cut_memory, cut_quotations
from inference.records import Call, Completion, Sample, StepEvidence

Copy = Callable[[str], Iterator[str]]
"""From a response to the texts that an analyst writes one after the other."""


def spoken(text: str) -> list[str]:
    """Words in lower case, written anew here: letters and digits in a row, or one Chinese character."""
    return re.findall(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+", text.lower())


def eights(text: str) -> set[tuple[str, ...]]:
    words = spoken(text)
    return {tuple(words[at : at + 8]) for at in range(len(words) - 7)}


def leaks(prompt: str, sample: Sample) -> set[tuple[str, ...]]:
    """Runs of eight words of a raw response in `prompt` that are neither in the scenario nor in the rubric."""
    raw = set().union(*(eights(text) for text in sample.responses.values()))
    return (eights(prompt) & raw) - eights(sample.scenario) - eights(prompts.describe(CGPST))


def everything(text: str) -> Iterator[str]:
    while True:
        yield text


def pieces(text: str, words: int = 12) -> Iterator[str]:
    """The whole response, cut into passages that follow one another."""
    tokens = text.split()
    while True:
        for at in range(0, len(tokens), words):
            yield " ".join(tokens[at : at + words])


def backwards(text: str) -> Iterator[str]:
    """From every word to the end, later starts first, in capitals and without punctuation."""
    words = re.findall(r"\w+", text.upper())
    while True:
        for at in range(max(0, len(words) - 9), -1, -3):
            yield " ".join(words[at : at + 40])


def quoting(text: str) -> Iterator[str]:
    """Ten words in quotation marks, twice in a text."""
    tokens = text.split()
    while True:
        for at in range(0, len(tokens), 5):
            passage = " ".join(tokens[at : at + 10])
            yield f'says "{passage}" and then “{passage}”'


COPIES: list[Copy] = [everything, pieces, backwards, quoting]


def copied(sample: Sample, copy: Copy, **options: object) -> Run:
    """A run of `creaeval` whose analyst copies the responses that it is shown; the judge gives the first score."""

    def reply(call: Call, _: int) -> Completion:
        assert call.json_schema is not None
        shown = [text for text in sample.responses.values() if text and prompts.fence(text) in text_of(call)]
        texts = copy("\n".join(shown))
        return Completion(text=json.dumps(filled(call.json_schema, lambda _: next(texts))))

    return run(CGPST, sample, reply, method="creaeval", **options)


def judging(found: Run) -> list[str]:
    return [text_of(call) for call, model in zip(found.calls, found.models, strict=True) if model == "judge"]


def assert_sealed(sample: Sample, found: Run) -> None:
    assert not found.unscored()
    assert judging(found)
    for prompt in judging(found):
        assert not leaks(prompt, sample)
    analysed = "\n".join(
        text_of(call) for call, model in zip(found.calls, found.models, strict=True) if model != "judge"
    )
    assert leaks(analysed, sample) == leaks("\n\n".join(sample.responses.values()), sample)


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("options", [{}, {"judge_scope": "step"}, {"stepwise": False}, {"memory": False}])
def test_no_copy_of_a_simulated_response_reaches_the_judge(copy: Copy, options: dict[str, object]) -> None:
    for response in simulated(6, 33):
        sample = as_sample(response)
        found = copied(sample, copy, **options)
        assert_sealed(sample, found)
        assert sum(part.cut for part in found.answers.evidence) >= 23  # every text that isn't a name


@pytest.mark.parametrize("copy", COPIES)
def test_no_copy_of_the_official_response_reaches_the_judge(copy: Copy, data_dir: Path) -> None:
    scenarios = read_scenarios(data_dir / "cgpst" / "future_scenarios_en.json")
    for sample in to_samples(read_ratings(data_dir / "cgpst" / "data_A.json"), CGPST, scenarios):
        found = copied(sample, copy)
        assert_sealed(sample, found)
        assert sum(part.cut for part in found.answers.evidence) >= 23


@pytest.mark.parametrize("copy", [everything, quoting])
def test_no_copy_of_a_chinese_or_mixed_response_reaches_the_judge(copy: Copy) -> None:
    chinese = "在未来的城市里,自动驾驶的汽车会让老人和孩子都能自由地出行,但是司机们将会失去工作。"
    mixed = "The cars 会让老人和孩子 move freely, 但是司机们将会失去 their work, and 城市 becomes very quiet at night."
    sample = Sample(
        id="s",
        scenario="自动驾驶的汽车 in the Tarrow Valley.",
        responses=dict.fromkeys(_steps(), chinese) | {"step6": mixed},
    )
    found = copied(sample, copy)
    assert_sealed(sample, found)
    text = found.answers.evidence[1].texts["focus"]
    if copy is everything:
        assert text.split(CUT)[0] == "在未来的城市里, "


def _steps() -> list[str]:
    return [step.name for step in CGPST.answered]


WORDS = st.sampled_from(
    # Some of them are words of the labels in the judge's prompt.
    [
        "Rope",
        "rope,",
        "tin",
        "“swing”",
        "3",
        "e-mail",
        "橋",
        "水車",
        "don't",
        "…",
        "–",
        "challenge",
        "1",
        "Impact",
        "Evidence",
    ]
)
SPEECH = st.lists(WORDS, min_size=0, max_size=60).map(" ".join)


@given(SPEECH, SPEECH, SPEECH)
def test_evidence_holds_no_run_of_eight_words(raw: str, allowed: str, text: str) -> None:
    part = StepEvidence(step="use", texts={"originality": text + raw})
    cut = cut_quotations(part, forbidden_runs([raw], [allowed]))
    left = cut.texts["originality"]
    assert not (eights(left) & eights(raw)) - eights(allowed)
    # What remains are words of the text, in their order, and as many as possible: nothing is cut without a copy.
    remaining = iter(spoken(text + raw))
    assert all(word in remaining for word in spoken(left))
    assert (left == text + raw) == (cut.cut == 0)
    if (eights(text + raw) & eights(raw)) - eights(allowed):
        assert cut.cut
    elif len(spoken(text + raw)) < LONG_TEXT and len("".join(spoken(raw))) < LETTERS:
        assert not cut.cut


@given(st.lists(SPEECH, min_size=6, max_size=6), st.sampled_from(COPIES))
@settings(deadline=None, max_examples=30)
def test_no_copy_of_any_response_reaches_the_judge(texts: list[str], copy: Copy) -> None:
    responses = dict(zip(_steps(), (text or "tin" for text in texts), strict=True))
    sample = Sample(id="s", scenario="a rope and a tin", responses=responses)
    for prompt in judging(copied(sample, copy)):
        assert not leaks(prompt, sample)


def cut(text: str, raw: str, allowed: str = "") -> tuple[str, int]:
    part = cut_quotations(StepEvidence(step="use", texts={"a": text}), forbidden_runs([raw], [allowed]))
    return part.texts["a"], part.cut


RAW = "One two three four five six seven eight nine ten eleven twelve."
OWN = " ".join(f"own{number}" for number in range(21))


@pytest.mark.parametrize(
    ("text", "left", "count"),
    [
        ("one two three four five six seven", "one two three four five six seven", 0),
        ("one two three four five six seven eight", f"one two three four five six seven {CUT}", 1),
        (
            'Says "one, two, THREE four five six seven eight nine" and stops.',
            f'Says "one, two, THREE four five six seven {CUT} " and stops.',
            1,
        ),
        (
            f"{RAW} Then it says: {RAW}",
            f"One two three four five six seven {CUT} . Then it says: {CUT} .",  # a text of 27 words, 24 copied
            2,
        ),
        (
            f"{RAW} {OWN}: {RAW[:39]}",
            f"One two three four five six seven {CUT} . {OWN}: One two three four five six seven {CUT}",
            2,
        ),
        (
            "two three four five six seven eight, but nine ten eleven",
            "two three four five six seven eight, but nine ten eleven",
            0,
        ),
        ("A text of its own that is longer than seven words", "A text of its own that is longer than seven words", 0),
    ],
)
def test_what_is_cut_by_hand(text: str, left: str, count: int) -> None:
    assert cut(text, RAW) == (left, count)


def test_a_cut_makes_no_new_copy() -> None:
    """Once the middle is gone, the ends of a text may be a copy of another passage; they are cut too."""
    raw = "a b c d e f g h i j. a b c d e f g X Y Z."
    left, count = cut("a b c d e f g h i j X Y Z", raw)
    assert not eights(left) & eights(raw)
    assert count == 2


def test_what_the_scenario_or_the_rubric_says_may_be_quoted() -> None:
    assert cut(RAW, RAW, allowed=f"In the year 2050: {RAW}") == (RAW, 0)
    assert cut(RAW, RAW, allowed="one two three four five six seven eight")[1] == 1


def test_a_quotation_does_not_go_on_in_the_label_of_the_next_text() -> None:
    raw = "Towns may choose to go on alone. This challenge matters. Some words before impact then follow, as is usual."
    part = StepEvidence(
        step="list",
        items=(
            {"a": "May choose to go on alone. This", "b": "Some words before"},
            {"a": "then follow as is usual."},
        ),
        cut=1,
    )
    (found,) = cut_across([part], [["heading", "challenge", "impact"]], forbidden_runs([raw], []))
    assert found.items == (
        {"a": f"May choose to go on alone. {CUT}", "b": "Some words before"},
        {"a": f"then follow as {CUT} usual."},
    )
    assert found.cut == 3


def test_a_response_that_holds_our_labels_alone_changes_nothing() -> None:
    labels = [["Evidence on step list: challenge 1 fluency and elaboration", "challenge"]]
    part = StepEvidence(step="list", texts={"a": "", "b": "something"})
    assert cut_across([part], labels, forbidden_runs([labels[0][0]], [])) == [part]


PLAIN = (
    "The old harbour office finally borrowed a façade from the naive fishermen because infrastructure "
    "costs more than the council of the town would ever offer them in one wet winter"
)
DISGUISES: dict[str, Callable[[str], str]] = {
    "zero width": lambda text: "\u200b".join(text),
    "soft hyphens": lambda text: text.replace("o", "o\u00ad"),
    "full width": lambda text: "".join(chr(ord(c) + 0xFEE0) if c.isascii() and c.isalpha() else c for c in text),
    "decomposed": lambda text: unicodedata.normalize("NFD", text),
    "accents": lambda text: text.replace("e", "é").replace("n", "n\u0323"),
    "ligatures": lambda text: text.replace("ffi", "ﬃ").replace("fi", "ﬁ"),
    "line breaks": lambda text: text.replace("infrastructure", "infra-\nstructure").replace("harbour", "har- bour"),
    "Cyrillic": lambda text: text.translate(str.maketrans("aeopcxTi", "аеорсхТі")),
    "Greek": lambda text: text.translate(str.maketrans("oviaT", "ονιαΤ")),
    "bold": lambda text: "".join(chr(ord(c) - 97 + 0x1D41A) if "a" <= c <= "z" else c for c in text),
    "invisible letters": lambda text: "\u3164".join(text),
    "backspaces": lambda text: text.replace("e", "e\x08"),
    "glued": lambda text: text.replace(" ", ""),
    "glued in pairs": lambda text: re.sub(r"(\S+) (\S+)", r"\1\2", text),
    "spaced": lambda text: " ".join(text.replace(" ", "")),
    "dotted": lambda text: ".".join(text),
    "a filler after seven": lambda text: re.sub(r"((?:\S+ ){7})", r"\1hm ", text),
    "a filler after five": lambda text: re.sub(r"((?:\S+ ){5})", r"\1hm ", text),
    "out of order": lambda text: " ".join([*text.split()[14:], *text.split()[7:14], *text.split()[:7]]),
}


@pytest.mark.parametrize("name", DISGUISES)
@pytest.mark.parametrize("turned", [False, True])
def test_a_disguised_copy_is_cut(name: str, turned: bool) -> None:
    """Whichever of the response and the evidence is in disguise, a third of the words is left at most."""
    raw, text = PLAIN, DISGUISES[name](PLAIN)
    if turned:
        raw, text = text, raw
    left, count = cut(f"Says: {text}; no more.", raw)
    assert count
    assert left.startswith("Says: ")
    assert left.endswith("; no more.")
    assert len(left) < len("Says: ; no more.") + len(text) / 2
    assert CUT in left


def test_short_words_in_disguise_are_cut_after_the_seventh() -> None:
    left, count = cut("Ве аs ıt mау bе, \u200dwе аll ɡо hоmе nоw", "Be as it may be, we all go home now. So it is.")
    assert (left, count) == (f"Ве аs ıt mау bе, \u200dwе аll {CUT}", 1)


def test_accents_of_the_last_letter_go_with_it() -> None:
    text = unicodedata.normalize("NFD", "one two three four five six seven café, then")
    assert cut(text, "one two three four five six seven café") == (f"one two three four five six seven {CUT} , then", 1)


@pytest.mark.parametrize("name", ["zero width", "decomposed", "full width"])
def test_korean_and_japanese_count_by_character(name: str) -> None:
    raw = "자율주행차가거리를달린다 橋ガ水車ハ動ク"
    left, count = cut(DISGUISES[name](raw), raw)
    assert count
    assert unicodedata.normalize("NFC", left.replace("\u200b", "")) == f"자율주행차가거 {CUT}"


def test_seven_long_words_may_be_quoted() -> None:
    raw = "municipal infrastructure administrations systematically underestimate recurring maintenance obligations"
    text = f'names "{" ".join(raw.split()[:7])}" and nothing else'
    assert cut(text, raw) == (text, 0)


def test_hyphens_of_a_compound_stay_hyphens() -> None:
    raw = "a self-\ndriving car may take us to the well-known mill"
    assert cut("a self-driving car may take us to the mill", raw)[1] == 1
    assert cut("a selfdriving car may take us to the mill", raw)[1] == 1
    assert cut("a self-driving car may take us", raw) == ("a self-driving car may take us", 0)


def test_a_long_text_may_be_half_copied() -> None:
    copied = "one two three four five own six seven eight nine ten"
    assert cut(f"{copied} {' '.join(OWN.split()[:9])}", RAW)[1] == 0
    assert cut(f"{copied} {' '.join(OWN.split()[:8])}", RAW)[1] == 0  # 19 words
    assert cut(f"{copied} eleven {' '.join(OWN.split()[:8])}", RAW) == (
        f"one two three four five own {CUT} {' '.join(OWN.split()[:8])}",
        1,
    )


@pytest.mark.parametrize("disguise", ["plain", "glued", "windows", "line breaks"])
@pytest.mark.parametrize("vocabulary", [3, 60, 6000])
def test_a_long_hostile_text_is_cut_in_a_second(disguise: str, vocabulary: int) -> None:
    chosen = random.Random(0)
    raw = " ".join(f"{chosen.randrange(vocabulary)}wörd" for _ in range(5500))
    tokens = raw.split()
    text = {
        "plain": raw,
        "glued": raw.replace(" ", ""),
        "windows": " ".join(" ".join([*tokens[at : at + 12], "own"]) for at in range(0, 2700, 6)),
        "line breaks": raw.replace(" ", "-\n"),
    }[disguise]
    forbidden = forbidden_runs([raw], [])
    began = time.process_time()
    part = cut_quotations(StepEvidence(step="use", texts={"a": text}), forbidden)
    cut_across([part], [["label"]], forbidden)
    assert time.process_time() - began < 1
    assert not eights(part.texts["a"]) & eights(raw)


def test_memories_are_cut_before_they_are_kept() -> None:
    part = StepEvidence(step="use", texts={"a": "short"}, memory=RAW, cut=1)
    kept = cut_memory(part, forbidden_runs([RAW], []))
    assert (kept.memory, kept.cut) == (f"One two three four five six seven {CUT} .", 2)


@pytest.mark.parametrize(
    "options", [{"method": "creaeval"}, {"method": "creaeval", "stepwise": False}, {"method": "tat"}]
)
def test_no_evidence_or_memory_that_is_stored_holds_a_copy(options: dict[str, object]) -> None:
    sample = as_sample(simulated(1)[0])
    whole = "\n".join(sample.responses.values())

    def reply(call: Call, _: int) -> Completion:
        assert call.json_schema is not None
        return Completion(text=json.dumps(filled(call.json_schema, lambda _: whole)))

    found = run(CGPST, sample, reply, **options)
    stored = [
        text
        for part in found.answers.evidence
        for row in (part.texts, *part.items)
        for text in (*row.values(), part.memory)
    ]
    assert len(stored) > 20
    assert not any(leaks(text, sample) for text in stored)
    assert all(part.cut for part in found.answers.evidence)
    if options["method"] == "creaeval":
        assert all(CUT in part.memory for part in found.answers.evidence)
        # A later analysis reads the response itself.
        assert "stepwise" in options or any(leaks(text_of(call), sample) for call in found.calls[1:6])


def test_items_are_cut_and_counted_together_and_memories_are_not() -> None:
    part = StepEvidence(step="list", items=({"a": RAW, "b": "short"}, {"a": RAW, "b": RAW}), memory=RAW)
    cut_part = cut_quotations(part, forbidden_runs([RAW], []))
    first = f"One two three four five six seven {CUT} ."
    assert cut_part.items == ({"a": first, "b": "short"}, {"a": first, "b": first})
    assert (cut_part.cut, cut_part.memory) == (3, RAW)


def test_evidence_that_quotes_as_it_should_is_hardly_touched() -> None:
    """The simulated analyst quotes six words at most; beside a word of its own that is the response's too they may be
    one too many (``the town's`` counts three)."""
    texts = cuts = 0
    for response in simulated(200):
        sample = as_sample(response)
        forbidden = forbidden_runs(sample.responses.values(), [sample.scenario, prompts.describe(CGPST)])
        texts += sum(len(row) for part in response.evidence for row in (part.texts, *part.items))
        cuts += sum(cut_quotations(part, forbidden).cut for part in response.evidence)
    assert texts > 15_000
    assert cuts < texts / 500


def test_a_memory_may_consist_of_short_quotations() -> None:
    quotations = "one two three four five six; eight nine ten eleven twelve; two three four five six seven; own word"
    part = StepEvidence(step="use", memory=f"{quotations}; two three four five six")
    assert cut_memory(part, forbidden_runs([RAW], [])) == part
