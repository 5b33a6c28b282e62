"""The figures of docs/reliability.md from results/reliability.json: python -m tests.slow.table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE, RESULTS = ROOT / "docs" / "reliability.md", ROOT / "results" / "reliability.json"
BEGIN, END = "<!-- figures, made by python -m tests.slow.table -->\n", "<!-- end of figures -->\n"
WORDS = {
    "state": "states",
    "model": "models",
    "prior": "priors",
    "array": "array files (TOML)",
    "odas": "ODAS configurations",
    "ledger": "ledgers",
    "signature": "signatures",
    "age": "sealed files (age)",
    "wav": "WAV files",
    "sound": "FLAC, Ogg, AIFF, AU, CAF, W64",
    "pickle": "pickles (labels of SSLR)",
    "bench": "benchmarks (TOML)",
    "results": "results of benchmarks (JSON)",
    "labels": "labels (CSV)",
    "features": "feature files",
    "cache": "prepared data of benchmarks",
    "stems": "stems of simulated scenes",
    "identity": "files of secret keys",
    "trusted": "lists of trusted keys",
    "settings": "settings",
    "remembered": "what is remembered of ledgers",
    "hdf5": "MATLAB v7.3 (HDF5)",
    "mat": "MATLAB v5 and v4, a process each",
}
"""What the kinds of mutated files are."""


def figures(whole: dict[str, Any]) -> str:
    """The tables, as Markdown."""
    kinds = whole["kinds"]
    files = {name: kinds[name] for name in WORDS if kinds.get(name, {}).get("done")}
    lines = [_first_line(whole, kinds, files), "", *_files(files), "", *_commands(kinds)]
    return "\n".join(lines) + "\n"


def _first_line(whole: dict[str, Any], kinds: dict[str, Any], files: dict[str, Any]) -> str:
    def done(family: str) -> str:
        return _number(sum(row["done"] for name, row in kinds.items() if name.startswith(family + " ")))

    inputs, asked = (sum(row[key] for row in files.values()) for key in ("done", "asked"))
    bad = sum(row["not_clean"] for row in kinds.values())
    part = "" if inputs >= asked else f" (of {_number(asked)} in a whole run: this was a part of one)"
    times: dict[str, float] = {}
    for run in whole["runs"]:
        where = f"{run['processes']} at a time on {run['machine']}"
        times[where] = times.get(where, 0.0) + run["minutes"]
    took = [f"{minutes:.0f} minutes, {where}" for where, minutes in times.items()]
    return (
        f"{_number(inputs)} mutated files{part}, {done('kill')} kill points, {done('disk')} full disks and "
        f"{done('command')} commands on mutated files; **{_number(bad)} were not clean**.\n\n"
        f"Measured in {'; '.join(took)}."
    )


def _number(n: int) -> str:
    """Digits in threes."""
    return f"{n:,}".replace(",", " ")


def _files(files: dict[str, Any]) -> list[str]:
    lines = [
        "| mutated | inputs | read | refused | not clean | different messages |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in files.items():
        ends = [row["outcomes"].get(end, 0) for end in ("read", "refused")]
        cells = [WORDS[name], row["done"], *ends, row["not_clean"], row["messages"]]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def _commands(kinds: dict[str, Any]) -> list[str]:
    scenes = dict.fromkeys(
        n.partition(" ")[2] for n in kinds if n.startswith(("kill ", "disk ")) and kinds[n]["done"]
    )
    lines = [
        "| command | kill points | killed twice | full disks | of them real | not clean |",
        "|---|---|---|---|---|---|",
    ]
    for scene in scenes:
        kill, disk = (kinds.get(f"{family} {scene}", {}) for family in ("kill", "disk"))
        twice = kill.get("outcomes", {}).get("of them killed twice", 0)
        real = disk.get("outcomes", {}).get("of them on a real disk", 0)
        bad = kill.get("not_clean", 0) + disk.get("not_clean", 0)
        cells = [f"`tyto {scene}`", kill.get("done", 0), twice, disk.get("done", 0), real, bad]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return lines


def page_with(text: str, made: str) -> str:
    """A page whose figures are these."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + "\n" + made + "\n" + END + rest.split(END)[1]


def main() -> None:
    """Write the figures into the page."""
    whole = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(page_with(PAGE.read_text(encoding="utf-8"), figures(whole)), encoding="utf-8")


if __name__ == "__main__":
    main()
