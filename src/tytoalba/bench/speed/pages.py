"""docs/speed.md and docs/scale.md: what stands between their marks is made from the JSON of `tyto speed`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from tytoalba.bench.speed.scale import Assumed, constants, scale

MARK = re.compile(r"(<!-- measured: (\w+) -->\n).*?(\n<!-- end -->)", re.DOTALL)
Measured = Mapping[str, Any]


def rendered(page: str, measured: Measured) -> str:
    """The page with all that stands between its marks made anew.

    >>> text = "<!-- measured: when -->\\nold\\n<!-- end -->"
    >>> machine = {"cpu": "X", "cores": 2, "sums": "int8", "versions": {"numpy": "2"}}
    >>> measured = {"date": "2026-01-02", "quick": False, "busy": False, "machine": machine}
    >>> rendered(text, measured).splitlines()[1]
    'Measured on 2026-01-02: X, 2 cores, sums in int8; numpy 2.'
    """
    return MARK.sub(lambda found: found[1] + PARTS[found[2]](measured) + found[3], page)


def _when(measured: Measured) -> str:
    machine = measured["machine"]
    cores = f"{machine['cores']} core{'s' * (machine['cores'] > 1)}"
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    busy = " The machine was busy: seconds of the CPU, one thread." if measured["busy"] else ""
    quick = " With `--quick`: no numbers to quote." if measured["quick"] else ""
    return (
        f"Measured on {measured['date']}: {machine['cpu']}, {cores}, sums in "
        f"{machine['sums']}; {versions}.{busy}{quick}"
    )


def _rows(measured: Measured) -> str:
    lines = ["| task | implementation | | times the peer | threads |", "|---|---|---:|---:|---:|"]
    for row in measured["rows"]:
        ratio = "" if row["ratio"] is None else number(row["ratio"])
        note = f" ({row['note']})" if row["note"] else ""
        value = f"{number(row['value'])} {row['unit']}"
        threads = row["threads"] or "all"
        lines.append(f"| {row['task']} | {row['name']}{note} | {value} | {ratio} | {threads} |")
    return "\n".join(lines)


def _exponents(measured: Measured) -> str:
    lines = ["| time of | grows with | exponent | measured at |", "|---|---|---:|---|"]
    for row in measured["exponents"]:
        sizes = ", ".join(str(size) for size in row["sizes"])
        lines.append(f"| {row['task']} | {row['against']} | {row['exponent']:.2f} | {sizes} |")
    return "\n".join(lines)


def _ceilings(measured: Measured) -> str:
    lines = ["| task | reached | ceiling | possible | share |", "|---|---:|---|---:|---:|"]
    for row in measured["ceilings"]:
        reached, possible = number(row["reached"]), number(row["possible"])
        lines.append(
            f"| {row['task']} | {reached} {row['unit']} | {row['ceiling']} | {possible} {row['unit']} "
            f"| {100 * row['share']:.0f} % |"
        )
    return "\n".join(lines)


def _exact_cost(measured: Measured) -> str:
    rates = {row["name"]: row["value"] for row in measured["rows"]}
    costs = [
        rates[f"{name}, in floats"] / rates[f"{name}, the same on every machine"]
        for name in ("pepper", "respeaker-usb-4")
    ]
    return (
        "Features with [the same bits on every machine](how-it-works.md#the-same-bits-on-every-machine) take "
        f"{number(costs[0])} times as long as the same features in floats for Pepper, and "
        f"{number(costs[1])} times for the ReSpeaker USB array."
    )


def _constants(measured: Measured) -> str:
    found, a = constants(measured), Assumed()
    return "\n".join(
        [
            "| one machine | | from |",
            "|---|---:|---|",
            f"| sound files to features | {number(found['features'])} times real time | measured |",
            f"| features to sums | {number(found['learning'])} frames/s | measured |",
            "| sound, four microphones, 16 kHz, 16 bits | 461 MB per hour | arithmetic |",
            f"| cores per machine | {measured['machine']['cores']} | measured there |",
            f"| machines | {a.machines} | assumed |",
            f"| a machine | ${a.per_machine_hour:.2f} per hour | assumed |",
            f"| storage | ${a.per_terabyte_month:g} per TB and month | assumed |",
            f"| network of the storage | {a.network * 8 / 1e9:g} Gbit/s | assumed |",
        ]
    )


def _scale(measured: Measured) -> str:
    a = Assumed()
    found = scale(constants(measured), a)
    return "\n".join(
        [
            "| a million hours | |",
            "|---|---:|",
            f"| sound | {number(found.storage_bytes / 1e12)} TB |",
            f"| frames | {number(found.frames / 1e9)} billion |",
            f"| machine-hours, sound to features | {number(found.features_hours)} |",
            f"| machine-hours, features to sums | {number(found.learning_hours)} |",
            f"| {a.machines} machines take | {number(found.days)} days |",
            f"| the network alone takes | {number(found.network_days)} days |",
            f"| {a.machines} machines read | {number(found.read_rate / 1e9)} GB/s |",
            f"| machines that the network can feed | {number(found.most_machines)} |",
            f"| sums of one worker, as they travel | {number(found.state_bytes / 1e6)} MB |",
            f"| sums sent by all machines | {number(found.sums_sent_bytes / 1e9)} GB |",
            f"| machines | ${number(found.compute_dollars)} |",
            f"| storage | ${number(found.storage_dollars_month)} per month |",
        ]
    )


def number(value: float) -> str:
    """Three digits, no exponent.

    >>> number(1234567.0), number(12.345), number(0.01234)
    ('1 230 000', '12.3', '0.0123')
    """
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        rounded = float(f"{value:.3g}")
        return f"{rounded:,.0f}".replace(",", " ")
    return f"{value:.3g}"


PARTS: dict[str, Callable[[Measured], str]] = {
    "when": _when,
    "rows": _rows,
    "exponents": _exponents,
    "ceilings": _ceilings,
    "exactcost": _exact_cost,
    "constants": _constants,
    "scale": _scale,
}
