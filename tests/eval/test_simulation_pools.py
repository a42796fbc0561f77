"""The phrases of the simulated CGPST: complete, in the form the writer needs, and not shared by training and test."""

import re
from collections import Counter
from collections.abc import Iterator

import pytest

from eval.benchmarks.simulation.pools import SCENARIOS, ScenarioPool, VoicePool, scenario_pool, voice_pool

CATEGORIES = {
    *("Arts & Aesthetics", "Basic Needs", "Business & Commerce", "Communication", "Defense", "Economics", "Education"),
    *("Environment", "Ethics & Religion", "Government & Politics", "Law & Justice", "Miscellaneous"),
    *("Physical Health", "Psychological Health", "Recreation", "Social Relationships", "Technology", "Transportation"),
}
VOICES = ("train", "test")
# Field → (fewest phrases, fewest words, most words).
PHRASES = {
    "cites": (16, 3, 7),
    "false_facts": (6, 5, 12),
    "objects": (12, 2, 4),
    "groups": (14, 2, 4),
    "actors": (24, 2, 5),
    "places": (16, 2, 6),
    "stakes": (36, 5, 9),
    "wide": (4, 2, 8),
}
ISSUE = {
    "conditions": (5, 6, 14),
    "also": (2, 2, 6),
    "purposes": (4, 3, 9),
    "outcomes": (6, 4, 9),
}
# Field → fewest templates; `SLOTLESS` may be whole sentences without a slot.
TEMPLATES = {
    **dict.fromkeys(["ties", "hows", "fillers", "padding"], 36),
    **dict.fromkeys(["who", "when", "where", "how", "money", "tools", "risks", "checks", "spread"], 24),
    **dict.fromkeys(["openers", "whys", "specifics", "aims"], 16),
    **dict.fromkeys(["vague_challenges", "stray_challenges", "vague_solutions", "stray_solutions"], 24),
    **dict.fromkeys(["thin", "thin_solutions", "instead", "stems", "given", "superlatives"], 12),
    **dict.fromkeys(["tie_kvp", "tie_purpose", "tie_group", "tie_theme", "tie_none", "criterion_clear"], 12),
    **dict.fromkeys(["generic", "unrelated"], 16),
    "criterion_vague": 8,
    "nouns": 5,
}
LONGEST_RUN = 6  # words of a template between two slots: longer ones would recur from response to response


def words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:['’-][^\W_]+)*", text)


def texts(node: object) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    elif isinstance(node, dict):
        for value in node.values():
            yield from texts(value)
    elif isinstance(node, list | tuple):
        for value in node:
            yield from texts(value)


def phrases(pool: ScenarioPool | VoicePool) -> list[str]:
    """All phrases of a file but names, categories and the scenario's text."""
    content = pool.model_dump(exclude={"id", "theme", "voice", "text", "cites", "headings", "nouns", "superlatives"})
    return [text for text in texts(content) if len(words(text)) > 2]


def check_sizes(name: str, found: tuple[str, ...], least: int, low: int, high: int) -> Iterator[str]:
    if len(set(found)) < least or len(set(found)) < len(found):
        yield f"{name}: {len(set(found))} different phrases of {len(found)}, {least} are needed"
    for text in found:
        if not low <= len(words(text)) <= high:
            yield f"{name}: {text!r} has {len(words(text))} words, not {low} to {high}"


def scenario_faults(pool: ScenarioPool) -> Iterator[str]:
    for name, limits in PHRASES.items():
        yield from check_sizes(name, getattr(pool, name), *limits)
    if not 560 <= len(words(pool.text)) <= 720:
        yield f"text: {len(words(pool.text))} words, not 560 to 720"
    if len(words(pool.gist)) > 28:
        yield "gist: more than 28 words"
    yield from (f"cites: {cite!r} is not in the text" for cite in pool.cites if cite not in pool.text)
    if str(pool.year) not in pool.text:
        yield "the year is not in the text"
    for kind, ideas in (("problems", pool.problems), ("devices", pool.devices)):
        novelty = Counter(idea.n for idea in ideas)
        if len(ideas) < 64 or novelty[0] < 24 or novelty[1] < 22 or novelty[2] < 14:
            yield f"{kind}: {len(ideas)} with novelty {dict(novelty)}; 64 with 24, 22, 14 are needed"
        if len({idea.c for idea in ideas}) < 8:
            yield f"{kind}: fewer than 8 categories"
        most = Counter(idea.c for idea in ideas).most_common(1)[0]
        if most[1] > 16:
            yield f"{kind}: {most[1]} of category {most[0]}, at most 16"
        for idea in ideas:
            if idea.c not in CATEGORIES:
                yield f"{kind}: unknown category {idea.c!r}"
            yield from check_sizes(kind, (idea.a, idea.b), 2, 5, 12)
            a, b = words(idea.a.lower()), words(idea.b.lower())
            if {tuple(a[i : i + 4]) for i in range(len(a) - 3)} & {tuple(b[i : i + 4]) for i in range(len(b) - 3)}:
                yield f"{kind}: {idea.a!r} and {idea.b!r} share four words in a row"
            if kind == "problems" and not re.search(r"\b(may|might|could)\b", idea.a + " " + idea.b):
                yield f"problems: {idea.a!r} has no may, might or could"
    weights = Counter(issue.weight for issue in pool.issues)
    if weights != {"central": 2, "suitable": 2, "side": 2, "off": 1}:
        yield f"issues: weights {dict(weights)}, not 2 central, 2 suitable, 2 side, 1 off"
    for number, issue in enumerate(pool.issues):
        for name, limits in ISSUE.items():
            yield from check_sizes(f"issues.{number}.{name}", getattr(issue, name), *limits)
        if len(issue.objectives) < 6:
            yield f"issues.{number}: fewer than 6 objectives"
    if len(pool.objectives) < 20:
        yield "objectives: fewer than 20"
    shown = [text for text in phrases(pool) if re.search(r"\d|[{}<>|]|[.!?]$", text) and text != pool.gist]
    yield from (f"{text!r}: no digits, braces or closing full stops in phrases" for text in shown)
    everything = [text for text in phrases(pool) if text != pool.gist]
    yield from (f"{text!r} occurs twice" for text, count in Counter(everything).items() if count > 1)


def slots(template: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", template))


SLOTS = {
    *("cite", "stake", "object", "group", "actor", "place", "problem", "device", "outcome", "kvp", "purpose", "theme"),
    *("objective", "condition", "n", "big", "percent", "month", "year", "days", "other", "superlative", "noun"),
}
NEEDED = {
    **{
        "openers": {"problem"},
        "ties": {"cite"},
        "whys": {"stake"},
        "thin": {"problem"},
        "instead": {"device", "actor"},
    },
    **{"specifics": {"actor", "device", "place", "year"}, "aims": {"outcome"}, "thin_solutions": {"device"}},
    **{"stems": {"kvp"}, "given": {"condition"}, "tie_kvp": {"kvp"}, "tie_purpose": {"purpose"}},
    **{"tie_group": {"group"}, "tie_theme": {"theme"}, "criterion_clear": {"objective"}},
}


def voice_faults(pool: VoicePool) -> Iterator[str]:
    content = {name: tuple(texts(value)) for name, value in pool.model_dump(exclude={"headings"}).items()}
    for name, least in TEMPLATES.items():
        count = len(set(getattr(pool, name)))
        if count < least:
            yield f"{name}: {count} templates, {least} are needed"
    for name in ("reach", "effect", "care"):
        yield from (
            f"{name}.{grade}: fewer than 8" for grade, found in enumerate(getattr(pool, name)) if len(set(found)) < 8
        )
    for name, found in content.items():
        for text in found:
            unknown = slots(text) - SLOTS
            if unknown:
                yield f"{name}: unknown slots {sorted(unknown)} in {text!r}"
            if not NEEDED.get(name, set()) <= slots(text):
                yield f"{name}: {text!r} needs {sorted(NEEDED[name])}"
            if re.search(r"\d", text):
                yield f"{name}: digits in {text!r}"
            runs = [len(words(part)) for part in re.split(r"\{\w+\}", text)]
            longest = 14 if name.startswith(("stray", "generic", "unrelated")) else LONGEST_RUN
            if max(runs) > longest:
                yield f"{name}: {max(runs)} words without a slot in {text!r}"


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str) -> None:
    faults = list(scenario_faults(scenario_pool(name)))
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("name", VOICES)
def test_voice(name: str) -> None:
    faults = list(voice_faults(voice_pool(name)))
    assert not faults, "\n".join(faults)


def runs(pool: ScenarioPool | VoicePool, length: int) -> set[tuple[str, ...]]:
    found = set()
    for text in phrases(pool):
        for part in re.split(r"\{\w+\}", text.lower()):
            tokens = words(part)
            found |= {tuple(tokens[i : i + length]) for i in range(len(tokens) - length + 1)}
    return found


def test_training_and_test_share_no_phrase() -> None:
    """No run of five words occurs in a phrase of both sides."""
    sides: dict[str, set[tuple[str, ...]]] = {"train": set(), "test": set()}
    for name in VOICES:
        sides[name] |= runs(voice_pool(name), 5)
    for name in SCENARIOS:
        sides[scenario_pool(name).voice] |= runs(scenario_pool(name), 5)
    shared = sides["train"] & sides["test"]
    assert not shared, "\n".join(" ".join(run) for run in sorted(shared))
