"""Whether one judge agrees better with people than another over all dimensions: two tests of the difference.

Both are on the responses that both judges scored. The published one is Student's paired t-test over the dimensions
(n = their number); it takes them for independent, which the dimensions of one response are not. The other is a paired
cluster bootstrap of the difference of the averages, on the same resamples of scenarios for both.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from eval.agreement import Array
from eval.metrics import KINDS, Kind, ScoreTable, score_tables
from eval.protocol import ALL, HUMAN, MEAN, METRICS, Frame, averages
from eval.resampling import RESAMPLES, percentile_interval, two_sided_p
from eval.rows import MEAN_OF_JUDGES, MetricRow
from inference.records import Judgement, Sample
from inference.rubric import Rubric

QWK = list(METRICS).index("qwk")
DIFFERENCE = "qwk_difference"


@dataclass(frozen=True)
class Difference:
    """Judges a and b on their common responses, averaged over the raters; NaN = undefined."""

    a: Array
    """(M,), one per metric of the protocol."""
    b: Array
    low: Array
    """(M,): 95 % interval of a − b."""
    high: Array
    p: Array
    """(M,): two-sided bootstrap p of "no difference"."""
    n: int
    """Responses of the dimension and rater with the fewest."""


@dataclass(frozen=True)
class Paired(Difference):
    """Averages over all dimensions, too, and the test over the dimensions."""

    t: float
    """Student's paired t over the dimensions' QWK."""
    p_t: float
    coverage: float
    """Share of the split's responses that both judges scored, mean over dimensions."""
    clustered: bool
    """Whether the bootstrap draws whole clusters, or single responses."""


@dataclass(frozen=True)
class Significance:
    """The best judge of a split against the second best, by the overall QWK of one kind of score."""

    split: str
    score: Kind
    judges: tuple[str, str]
    methods: tuple[str, str]
    dimensions: int
    paired: Paired

    @property
    def difference(self) -> float:
        return float(self.paired.a[QWK] - self.paired.b[QWK])


def paired(frame: Frame, table_a: ScoreTable, table_b: ScoreTable, kind: Kind) -> Paired:
    """Compare two judges on the responses both have scored, over all dimensions."""
    found, values = _compared(frame, table_a, table_b, kind)
    a, b = (of[:, QWK, 0] for of in values)
    known = [table_a.get(key, {}).keys() & table_b.get(key, {}).keys() for key in frame.keys]
    ids = {sample.id for sample in frame.everyone}
    t, p_t = t_test(a, b)
    return Paired(
        **vars(found[ALL, MEAN]),
        t=t,
        p_t=p_t,
        coverage=float(np.mean([len(ids & of) / len(ids) for of in known])),
        clustered=frame.clustered,
    )


def differences(
    frame: Frame, table_a: ScoreTable, table_b: ScoreTable, kind: Kind
) -> dict[tuple[str, str], Difference]:
    """(step, dimension) → comparison on the responses both have scored: of all, of each step, of each dimension."""
    return _compared(frame, table_a, table_b, kind)[0]


def _compared(
    frame: Frame, table_a: ScoreTable, table_b: ScoreTable, kind: Kind
) -> tuple[dict[tuple[str, str], Difference], tuple[Array, Array]]:
    """The comparisons, and the values (D, M, 1 + R) of both judges."""
    scores = [frame.scores(table, kind) for table in (table_a, table_b)]
    both = np.isfinite(scores[0]) & np.isfinite(scores[1])
    a, b = (np.moveaxis(frame.against_raters(np.where(both, of, np.nan)).mean(axis=0), 1, 0) for of in scores)
    n = np.stack([(np.isfinite(human) & both).sum(axis=1) for human in frame.human.values()]).min(axis=0)
    names = [(step.name, dimension.name) for step, dimension in frame.pairs]
    cells_a, cells_b = ({**averages(of, frame.pairs), **dict(zip(names, of, strict=True))} for of in (a, b))
    found = {}
    for step, dimension in cells_a:
        used = [
            position for position, name in enumerate(names) if step in (ALL, name[0]) and dimension in (MEAN, name[1])
        ]
        found[step, dimension] = _difference(cells_a[step, dimension], cells_b[step, dimension], int(n[used].min()))
    return found, (a, b)


def _difference(a: Array, b: Array, n: int) -> Difference:
    """From values (M, 1 + R): first the value, then its resamples."""
    apart = a - b
    ends = [
        (*percentile_interval(of[1:]), two_sided_p(of[1:])) if np.isfinite(of[0]) else (np.nan, np.nan, np.nan)
        for of in apart
    ]
    low, high, p = np.array(ends, dtype=np.float64).T
    return Difference(a[:, 0], b[:, 0], low, high, p, n)


def t_test(a: Array, b: Array) -> tuple[float, float]:
    """Student's paired t and two-sided p of values (D,); NaN where one is undefined or all differences are equal."""
    differences = a - b
    # Equal differences leave rounding noise to divide by.
    if len(a) < 2 or not np.isfinite(differences).all() or np.ptp(differences) < 1e-12:
        return float("nan"), float("nan")
    found = stats.ttest_rel(a, b)
    return float(found.statistic), float(found.pvalue)


def best_two(
    samples: Sequence[Sample],
    judgements: Iterable[Judgement],
    rubric: Rubric,
    splits: Mapping[str, Collection[str]],
    seed: int,
    rows: Sequence[MetricRow],
    resamples: int = RESAMPLES,
) -> list[Significance]:
    """For each split and kind of score with two judges or more whose overall QWK is defined; `rows` from `protocol`."""
    tables = score_tables(judgements)
    found = []
    for split, ids in splits.items():
        frame = Frame([sample for sample in samples if sample.id in ids], rubric.reported, seed, resamples)
        for kind in KINDS:
            ranked = _ranked(rows, split, kind)
            if len(ranked) > 1:
                a, b = ranked[:2]
                found.append(
                    Significance(
                        split=split,
                        score=kind,
                        judges=(a[0], b[0]),
                        methods=(a[1], b[1]),
                        dimensions=len(frame.pairs),
                        paired=paired(frame, tables[a], tables[b], kind),
                    )
                )
    return found


def _ranked(rows: Sequence[MetricRow], split: str, kind: Kind) -> list[tuple[str, str]]:
    """(judge, method) by overall QWK, highest first; without those for which it is undefined."""
    values = {
        (row.judge, row.method): row.value
        for row in rows
        if (row.split, row.score, row.step, row.dimension, row.metric) == (split, kind, ALL, MEAN, "qwk")
        and row.value is not None
        and row.method != HUMAN
        and row.judge != MEAN_OF_JUDGES
    }
    return sorted(values, key=lambda judge: -values[judge])


def significance_rows(found: Iterable[Significance], run_name: str, benchmark: str, simulated: bool) -> list[MetricRow]:
    """Tidy rows: the difference with its interval, t and both p-values; judge and method name both, ``a − b``."""
    rows = []
    for one in found:
        values = {
            DIFFERENCE: (one.difference, float(one.paired.low[QWK]), float(one.paired.high[QWK])),
            f"{DIFFERENCE}_p_bootstrap": (float(one.paired.p[QWK]), None, None),
            f"{DIFFERENCE}_t": (one.paired.t, None, None),
            f"{DIFFERENCE}_p_t_test": (one.paired.p_t, None, None),
        }
        rows += [
            MetricRow(
                run=run_name,
                benchmark=benchmark,
                split=one.split,
                judge=" − ".join(one.judges),
                method=" − ".join(one.methods),
                score=one.score,
                rater=MEAN,
                step=ALL,
                dimension=MEAN,
                metric=metric,
                value=value,
                low=low,
                high=high,
                n=one.paired.n,
                coverage=one.paired.coverage,
                simulated=simulated,
            )
            for metric, (value, low, high) in values.items()
        ]
    return rows
