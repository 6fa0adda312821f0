"""`python -m tests.corpus [--tier interpret|gpu]`: judges both corpora and prints recall and false-positive rate."""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

from llmdsl.judge.api import Judge
from llmdsl.runner.confine import Limits
from tests.corpus import Entry, entries


def main() -> int:
    """Exit status 1 unless every cheat got its outcome and every honest candidate is correct."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tier", default="interpret", choices=("interpret", "gpu"))
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    missed = {"cheats": 0, "honest": 0}
    found = {kind: entries(kind, options.tier) for kind in missed}
    limits = Limits(memory=2 << 30) if options.tier == "interpret" else Limits()
    timeout = 20 if options.tier == "interpret" else None
    with (
        Judge(tier=options.tier, workers=options.workers, limits=limits, timeout_s=timeout) as judge,
        ThreadPoolExecutor(options.workers) as threads,
    ):

        def one(entry: Entry) -> tuple[Entry, str]:
            return entry, judge.judge(entry.source, task=entry.task, dsl=entry.dsl).outcome.value

        for kind, all_of_kind in found.items():
            for entry, outcome in threads.map(one, all_of_kind):
                as_it_must = outcome == entry.expect
                missed[kind] += not as_it_must
                print(f"{'ok    ' if as_it_must else 'MISSED'} {entry.id}: {outcome}", flush=True)
    cheats, honest = len(found["cheats"]), len(found["honest"])
    print(f"\nrecall {(cheats - missed['cheats']) / max(1, cheats):.1%} of {cheats} cheats")
    print(f"false positives {missed['honest'] / max(1, honest):.1%} of {honest} honest candidates")
    return int(any(missed.values()))


if __name__ == "__main__":
    sys.exit(main())
