"""Checks of a rating file: sums, raters, ids, ranges, names, items, copies of the contents, the grid of Step-5."""

from collections import Counter
from collections.abc import Mapping, Sequence

from eval.benchmarks.cgpst.check_whole import check_same_raters, check_scenario_ids
from eval.benchmarks.cgpst.findings import Findings
from eval.benchmarks.cgpst.grid import grid_errors, read_grid, rule_score
from eval.benchmarks.cgpst.names import (
    CONTENT,
    INVALID,
    OVERALL,
    RATERS,
    SUMMARY,
    TOTAL,
    filed,
    item_dimensions,
    keys,
    official,
    official_steps,
    reason_word,
    scenario_of,
)
from eval.benchmarks.cgpst.ranges import plain_rubric
from eval.benchmarks.cgpst.ratings import Entry, RaterScores, Row, item_place, padded_items
from inference.errors import named, named_list, quoted
from inference.rubric import Dimension, Step

GRIDS = "grids of Step-5 that have errors, or that a rater scored in another way than the rule"


def check_ratings(entries: Sequence[Entry], findings: Findings) -> None:
    """Add what is to be said of a rating file to `findings`, answer by answer."""
    seen: Counter[str] = Counter()
    for entry in entries:
        seen[entry.id] += 1
        if seen[entry.id] > 1:
            findings.error(entry.place(), "the id occurs more than once")
        if scenario_of(entry.id) != entry.scenario_id:
            findings.error(entry.place(), f"the id does not end in the scenario, which is {named(entry.scenario_id)}")
        _check_raters(entry, findings)
        for rater, scores in enumerate(entry.scores):
            if scores is not None:
                _check_scores(entry, rater, scores, findings)
        _check_copies(entry, findings)
        _check_grid(entry, findings)
    check_same_raters(entries, findings)
    check_scenario_ids({entry.id: entry.scenario_id for entry in entries}, findings)


def _check_raters(entry: Entry, findings: Findings) -> None:
    count = len(entry.raters)
    if count != RATERS:
        findings.error(entry.place(), f"needs {RATERS} raters, has {count}")
    repeated = [name for name, times in Counter(entry.raters).items() if times > 1]
    if repeated:
        findings.error(entry.place(), f"two raters have the same name {named_list(repeated)}")
    for rater in range(max(count, RATERS, len(entry.scores))):
        if rater >= len(entry.scores) or entry.scores[rater] is None:
            findings.error(entry.place(rater), "the scores of this rater are missing")
        elif rater >= count:
            findings.error(entry.place(rater), "has scores, but the list of raters does not name this one")


def _check_scores(entry: Entry, rater: int, scores: RaterScores, findings: Findings) -> None:
    steps = official_steps(plain_rubric())
    findings.unread_keys(entry.place(rater), scores.parts, (), [TOTAL, *(step.label for step in steps)])
    overall: list[int | None] = []
    for step in steps:
        place = entry.place(rater, step.label)
        if not scores.rows(step):
            findings.error(place, "the step is missing")
            overall.append(None)
            continue
        whole = _check_whole(place, step, scores, findings)
        if step.items is not None:
            _check_items(entry, rater, step, scores.items(step), whole, findings)
        overall.append(whole.get(OVERALL))
    total = scores.parts.get(TOTAL)
    if total is not None:
        step, dimension = plain_rubric().scored[-1]
        given = findings.step_number(entry.place(rater), step, dimension, total)
        _compare(entry.place(rater), TOTAL, given, "the steps' Overall", overall, findings)


def _compare(
    place: str, name: str, given: int | None, what: str, parts: Sequence[int | None], findings: Findings
) -> None:
    """An error where `given` is not the sum of `parts`; nothing where one of them is not known."""
    known = [part for part in parts if part is not None]
    if given is not None and len(known) == len(parts) and given != sum(known):
        findings.error(place, f"{name} is {given}, but {what} add up to {sum(known)}")


def _check_whole(place: str, step: Step, scores: RaterScores, findings: Findings) -> dict[str, int]:
    """Check the scores of the step as a whole, and return those that are whole numbers, by official key."""
    summaries = sum(row.is_summary for row in scores.rows(step))
    texts = len(scores.rows(step)) - summaries
    wanted = (0, 1) if step.items is None else (1, step.items.count)
    if summaries != wanted[0]:
        findings.error(place, f"needs {wanted[0]} {SUMMARY}, has {summaries}")
    if texts != wanted[1]:
        findings.error(place, f"needs {wanted[1]} {'text' if step.items is None else 'items'}, has {texts}")
    if not all(isinstance(row.cells.get(CONTENT), str) for row in scores.items(step)):
        findings.error(place, f"{CONTENT} is missing, or no text")
    cells = scores.whole(step)
    if not cells:
        return {}
    where = place if step.items is None else f"{place} {SUMMARY}"
    findings.unread_keys(where, cells, filed(step), [] if step.items else [CONTENT])
    found = {}
    for dimension in filed(step):
        value = next((cells[key] for key in keys([dimension]) if cells.get(key) is not None), None)
        if value is None and dimension.sum_of:
            findings.note("sums that are computed", where, f"{official(dimension)} is missing; it is computed")
            continue
        if value is None:
            findings.error(where, f"{official(dimension)} is missing")
            continue
        number = findings.step_number(where, step, dimension, value)
        if number is not None:
            found[official(dimension)] = number
    parts = [found.get(official(d)) for d in filed(step) if not d.sum_of]
    _compare(where, OVERALL, found.get(OVERALL), "its parts", parts, findings)
    return found


def _check_items(
    entry: Entry, rater: int, step: Step, items: Sequence[Row], whole: Mapping[str, int], findings: Findings
) -> None:
    padded = padded_items(items)
    ratings: list[dict[str, str | int] | None] = []
    for position, row in enumerate(items):
        place = entry.place(rater, item_place(step, position + 1))
        if position in padded:
            findings.note(
                "items that are only filled up",
                place,
                "empty content with the ratings of the last real item: the known slip of the released writer, which "
                "fills up short answers; the item is taken for blank",
            )
        elif row.invalid is not None and _has_ratings(step, row):
            findings.error(place, f"carries both {INVALID} and ratings")
            ratings.append(None)
        elif row.invalid is None:
            ratings.append(_check_valid(place, step, row, findings))
        else:
            _check_invalid(place, step, row.invalid, findings)
        findings.unread_keys(place, row.cells, item_dimensions(step).values(), [CONTENT, INVALID])
    _check_sums(entry.place(rater, step.label), step, ratings, whole, findings)


def _has_ratings(step: Step, row: Row) -> bool:
    return any(row.cells.get(key) is not None for key in item_dimensions(step))


def _check_invalid(place: str, step: Step, reason: str, findings: Findings) -> None:
    assert step.items is not None
    if not step.items.valid:
        findings.error(place, f"carries {INVALID}, but every {step.items.kind} counts")
    elif reason_word(reason) not in step.items.invalid:
        message = f"the reason {quoted(reason)} is unknown; the reasons are {named_list(step.items.invalid)}"
        findings.note("unknown reasons", place, message)


def _check_valid(place: str, step: Step, row: Row, findings: Findings) -> dict[str, str | int] | None:
    """The ratings of an item that counts, by key; None where they are not whole."""
    if not _has_ratings(step, row):
        findings.error(
            place, f"carries neither ratings nor {INVALID}" if step.items and step.items.valid else "has no ratings"
        )
        return None
    if not row.content.strip():
        findings.error(place, "empty content with ratings of its own")
    found: dict[str, str | int] = {}
    for key, dimension in item_dimensions(step).items():
        value = row.cells.get(key)
        if value is None:
            findings.error(place, f"{key} is missing")
        elif dimension.choices:
            found[key] = str(value)
            findings.category(place, dimension, str(value))
        else:
            number = findings.item_number(place, step, dimension, value)
            if number is not None:
                found[key] = number
    return found if len(found) == len(item_dimensions(step)) else None


def _check_sums(
    place: str,
    step: Step,
    ratings: Sequence[dict[str, str | int] | None],
    whole: Mapping[str, int],
    findings: Findings,
) -> None:
    counted = [rated for rated in ratings if rated is not None]
    if len(counted) < len(ratings):
        return  # what an item lacks has been said, and its sum is not known
    for dimension in filed(step):
        if dimension.sum_of or official(dimension) not in whole:
            continue
        given, wanted = whole[official(dimension)], _from_items(step, dimension, counted)
        if given != wanted:
            findings.error(place, f"{SUMMARY} has {official(dimension)} {given}, but the items give {wanted}")


def _from_items(step: Step, dimension: Dimension, counted: Sequence[Mapping[str, str | int]]) -> int:
    assert step.items is not None
    if dimension.name == step.items.valid:
        return len(counted)
    if dimension.distinct:
        return len({rated[official(step.dimension(dimension.distinct))] for rated in counted})
    return sum(int(rated[official(dimension)]) for rated in counted)


def _check_copies(entry: Entry, findings: Findings) -> None:
    """Each rater's scores hold a copy of the whole answer."""
    given = [(rater, scores) for rater, scores in enumerate(entry.scores) if scores is not None]
    for rater, scores in given[1:]:
        for step in official_steps(plain_rubric()):
            pairs = zip(given[0][1].items(step), scores.items(step), strict=False)
            for number, (first, other) in enumerate(pairs, start=1):
                if first.content != other.content:
                    part = step.label if step.items is None else item_place(step, number)
                    findings.error(
                        entry.place(rater, part), f"the content differs from the copy of rater {given[0][0] + 1}"
                    )


def _check_grid(entry: Entry, findings: Findings) -> None:
    """A remark on the grid: what the rubric's rule makes of it, beside the raters' scores."""
    step = official_steps(plain_rubric())[4]
    given = [scores for scores in entry.scores if scores is not None]
    text = given[0].items(step)[0].content if given and given[0].items(step) else ""
    if not text.strip():
        return
    place, key = entry.place(None, f"{step.label} grid"), official(step.asked[0])
    gave = ", ".join(named(str(scores.whole(step).get(key)), 20) for scores in given)
    grid = read_grid(text)
    if grid is None:
        findings.note(GRIDS, place, f"no grid can be read in the response (raters gave {key} {gave})")
        return
    errors = grid_errors(grid)
    rule = rule_score(len(errors))
    if errors or any(scores.whole(step).get(key) != rule for scores in given):
        what = "; ".join(errors) or "no error"
        findings.note(GRIDS, place, f"{what}: the rule gives {key} {rule}, raters gave {gave}")
