"""The benchmark measures what it says: a small one, through real workers."""

import os
import re
import subprocess
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]


def test_a_small_one_prints_every_figure() -> None:
    small = {"BENCH_RUNS": "10", "BENCH_ROUNDS": "1", "BENCH_PARKED": "300", "BENCH_LINES": "40,120"}
    small |= {"BENCH_INBOX": "200,400", "BENCH_LOOKS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "agentops.bench"],
        cwd=REPO,
        env={**os.environ, **small, "DJANGO_SETTINGS_MODULE": ""},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = dict(re.findall(r"^  (\S.*?)  +(\S.*)$", done.stdout, flags=re.MULTILINE))
    through, floor = (
        float(figures[f"runs/s{name}"]) for name in (" through the workers", ", raw commits of the same writes")
    )
    assert 0 < through < floor
    for name in ("none", "300"):
        assert re.fullmatch(r"[\d.]+ / [\d.]+", figures[f"approve to complete, {name} parked, p50 / p95 ms"])
        assert float(figures[f"memory of web, worker and relay, {name} parked, MB"]) > 50
    assert float(figures["worker start to first step, s"]) > 0
    for size in ("40", "120"):
        assert re.fullmatch(r"[\d.]+ \(reading .*\)", figures[f"statement of {size} lines, ms a line"])
        assert float(figures[f"statement of {size} lines, peak memory of its reader, MB"]) > 20
    assert float(figures["statement, time a line, 120 beside 40"]) > 0
    lists = [name for name, figure in figures.items() if re.fullmatch(r"([\d.]+ +)+\d+, \d+( +above 1.5)?", figure)]
    assert {"tab mine", "filter customer", "decided, largest", "further down", "a decision page"} <= set(lists)
    for size in ("200", "400"):
        assert re.search(rf"^  {size}: [\d.]+, \d+ queries$", done.stdout, flags=re.MULTILINE)
