"""Write tests/long.txt: the test functions that take long, all their cases together.

It reads what pytest --durations=0 printed: `make durations`.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

LONG = 0.09
"""Seconds on one core from which a function is left out of `make quick`."""
ROW = re.compile(r"^([\d.]+)s (?:call|setup|teardown) +([^\[\s]+)")

seconds: Counter[str] = Counter()
for line in sys.stdin:
    print(line, end="")
    if found := ROW.match(line):
        seconds[found[2]] += float(found[1])
names = sorted(name for name, spent in seconds.items() if spent >= LONG)
if not names:
    sys.exit("no durations were read: nothing was written")
about = "# Made by `make durations`: tests that take long; `make quick` leaves them out.\n"
target = Path(__file__).parents[1] / "tests" / "long.txt"
target.write_text(about + "".join(f"{name}\n" for name in names), encoding="utf-8")
print(f"{len(names)} functions written to tests/long.txt", file=sys.stderr)
