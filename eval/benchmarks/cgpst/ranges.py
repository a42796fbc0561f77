"""Which of the ranges that sources give a value fits: the rubric ``cgpst`` has variants where they disagree."""

from functools import lru_cache

from inference.rubric import Rubric, load_rubric, variants_of

NAME = "cgpst"
Range = tuple[int, int]


@lru_cache
def plain_rubric() -> Rubric:
    """The rubric ``cgpst`` without a variant."""
    return load_rubric(NAME)


@lru_cache
def _ranges(per_item: bool) -> dict[str, dict[str, Range]]:
    """Variant → "step.dimension" → range. The empty variant is the rubric as it is."""
    rubrics = {"": plain_rubric()} | {variant: load_rubric(f"{NAME}#{variant}") for variant in variants_of(NAME)}
    return {
        variant: {
            f"{step.name}.{d.name}": d.range
            for step, d in (rubric.asked if per_item else rubric.scored)
            if not d.choices
        }
        for variant, rubric in rubrics.items()
    }


def plain_range(key: str) -> Range:
    """The range of "step.dimension" `key` in the rubric without a variant."""
    return _ranges(False)[""][key]


def other_ranges(key: str, *, per_item: bool = False) -> dict[str, Range]:
    """Variant → its range of "step.dimension" `key`, for the variants that change it."""
    ranges = _ranges(per_item)
    own = ranges[""].get(key)
    return {variant: found[key] for variant, found in ranges.items() if key in found and found[key] != own}


def fitting(key: str, value: float, used: Range, *, per_item: bool = False) -> str:
    """What `value`, which is outside the range `used`, would fit, for messages; empty where nothing does."""
    plain = _ranges(per_item)[""].get(key)
    if plain and plain != used and plain[0] <= value <= plain[1]:
        return f"the rubric {NAME} without a variant of this dimension"
    variants = [name for name, (low, high) in other_ranges(key, per_item=per_item).items() if low <= value <= high]
    return f"the variant {NAME}#{variants[0]}" if variants else ""


def variant_of(key: str, used: Range) -> str:
    """The variant that has the range `used` for "step.dimension" `key`; empty where it is the rubric's own."""
    return next((name for name, found in other_ranges(key).items() if found == used), "")
