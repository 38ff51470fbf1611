"""The shares of an instance's web processes in its requests."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from prometheus_client.mmap_dict import MmapedDict

#: Valid shares of a process; other runs measure the distribution of connections.
FAIR = (0.35, 0.65)


def requests_by_process(data_dir: Path) -> Counter[int]:
    """Process id → number of requests so far, from the files of the process's metrics."""
    answered: Counter[int] = Counter()
    for file in data_dir.glob("metrics/*/counter_*.db"):
        for key, value, _, _ in MmapedDict.read_all_values_from_file(str(file)):  # type: ignore[no-untyped-call]
            if '"platform_requests_total"' in key:
                answered[int(file.stem.rpartition("_")[2])] += int(value)
    return answered


def shares(before: Counter[int], after: Counter[int], processes: int) -> list[float]:
    """The share of each process in the requests between two counts, smallest first."""
    answered = sorted((after - before).values())
    answered = [0] * (processes - len(answered)) + answered
    return [count / max(1, sum(answered)) for count in answered]
