"""Renew docs/speed.md and docs/scale.md from results/speed.json, which `tyto speed --results` writes."""

from __future__ import annotations

import json
from pathlib import Path

from tytoalba.bench.speed.pages import rendered

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Write both pages."""
    measured = json.loads((ROOT / "results" / "speed.json").read_text("utf-8"))
    for name in ("speed", "scale"):
        page = ROOT / "docs" / f"{name}.md"
        page.write_text(rendered(page.read_text("utf-8"), measured), encoding="utf-8")


if __name__ == "__main__":
    main()
