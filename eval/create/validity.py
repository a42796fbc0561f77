"""Whether a path leads from the start entity to the target.

`strict`: every triple has three parts, the first head is the start, the last tail is the target, the tail of each
triple is the head of the next, and the last triple does not link an entity with itself. `shared`: the same, but
neighbours only need one entity in common, in either place. Names are compared `normalised`. The rule of the released
code is in `eval.create.official.validity`.
"""

from itertools import pairwise

from eval.create.normal import is_number, normalised, normalised_path
from eval.create.records import AnyPath, Validity

CHAIN = "chain"


def check_path(path: AnyPath, entity_a: str, entity_b: str, rel_b: str | None = None) -> Validity:
    """Validity of one path; `rel_b` is the relation that the last triple was to have, reported and never required.

    A path without triples, or with one that is no three names, is a ``bad_triple`` and compared no further.
    """
    if not path or not all(_is_triple(triple) for triple in path):
        return Validity(False, False, ("bad_triple",), ("bad_triple",))
    triples = normalised_path(path)
    ends = _end_faults(triples, normalised(entity_a), normalised(entity_b))
    chained = all(before[2] == after[0] for before, after in pairwise(triples))
    linked = all({before[0], before[2]} & {after[0], after[2]} for before, after in pairwise(triples))
    strict_reasons, shared_reasons = (
        tuple(reason for reason, found in {**ends, CHAIN: not connected, **_self_loop(triples)}.items() if found)
        for connected in (chained, linked)
    )
    return Validity(
        strict=not strict_reasons,
        shared=not shared_reasons,
        reasons=strict_reasons,
        shared_reasons=shared_reasons,
        final_relation=None if rel_b is None else triples[-1][1] == normalised(rel_b),
    )


def _is_triple(triple: object) -> bool:
    if not isinstance(triple, (list, tuple)) or len(triple) != 3:
        return False
    return all(map(_is_name, triple))


def _is_name(part: object) -> bool:
    if isinstance(part, str):
        return bool(part.strip())
    return is_number(part)


def _end_faults(triples: tuple[tuple[str, ...], ...], start: str, target: str) -> dict[str, bool]:
    return {"start": triples[0][0] != start, "end": triples[-1][2] != target}


def _self_loop(triples: tuple[tuple[str, ...], ...]) -> dict[str, bool]:
    return {"self_loop": triples[-1][0] == triples[-1][2]}
