"""Everything that can be shown of a bench run, from its JSON file alone: tables, pictures and one web page.

The page is a single file without any request to anywhere: data, drawing and style are inside. Its state
stands behind the # of its address (#set=main&view=n1&metric=acc&mask=taught&method=icarl&hide=lwf), so that a
view can be linked. What the results hold is only ever data and text there: it is embedded as JSON in which no
tag can begin, and a content security policy lets no script run but the page's own.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import Any

from tytoalba.bench import figures as figures
from tytoalba.bench import paper as paper
from tytoalba.bench.cells import Table
from tytoalba.bench.fair_tables import plain
from tytoalba.bench.formats import csv_rows, latex, markdown, markdown_text
from tytoalba.bench.plots import check_drawing, save_figure
from tytoalba.bench.results import METRICS, Run, load
from tytoalba.bench.summary import VIEWS, Summary, summarise
from tytoalba.bench.tables import tables
from tytoalba.storage.writing import write_whole

_DIGITS = {"acc": 2, "mae": 3}


def render(results: Sequence[Path] | Path, out: Path) -> list[Path]:
    """Write tables.md, tables.tex, rows.csv, the pictures and report.html into the folder `out`.

    results: one or several result files of the same data set. Nothing is written unless all of them can be
    read; each file is written whole or not at all. Returns the paths written.
    """
    check_drawing()
    runs = load(results)
    summaries = summarise(runs)
    made = tables(runs, summaries)
    texts = {
        "tables.md": f"# {markdown_text(title(runs))}\n\n{markdown(made)}\n{_origin(runs)}",
        "tables.tex": latex(made),
        "rows.csv": csv_rows(summaries),
        "report.html": page(runs, summaries, made),
    }
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in texts.items():
        write_whole(out / name, text.encode())
        written.append(out / name)
    return written + _pictures(summaries, out)


def page(runs: Sequence[Run], summaries: Sequence[Summary], made: Sequence[Table]) -> str:
    """The page as HTML."""
    template = files("tytoalba").joinpath("resources", "page.html").read_text(encoding="utf-8")
    found = re.search(r"<script>(.*?)</script>", template, re.DOTALL)
    assert found is not None
    digest = base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()
    filling = {
        "title": html.escape(title(runs)),
        "script_hash": f"'sha256-{digest}'",
        "data": embed(_payload(runs, summaries, made)),
    }
    # In one pass: what is filled in is not searched again.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: filling[match[1]], template)


def embed(value: Any) -> str:
    r"""JSON that can stand inside a script element: no tag, comment or line separator can come out of it.

    >>> embed({"a": "</script><!--"})
    '{"a":"\\u003c/script\\u003e\\u003c!--"}'
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def title(runs: Sequence[Run]) -> str:
    """Names of the result files, each once."""
    return "tytoalba: " + ", ".join(dict.fromkeys(run.path.stem for run in runs))


def _payload(runs: Sequence[Run], summaries: Sequence[Summary], made: Sequence[Table]) -> dict[str, Any]:
    sets: dict[str, list[Summary]] = {"main": plain(summaries)}
    for s in summaries:
        if s.swept and s.condition == "clean" and not s.mask:
            sets.setdefault(s.setting[0] if s.setting[0] != "main" else "main=", []).append(s)
    masked = {_row(s): s for s in summaries if s.condition == "clean" and s.mask}
    shown = {name: _unique(own, masked) for name, own in sets.items() if own}
    return {
        "title": title(runs),
        "source": paper.SOURCE,
        "data": runs[0].data_name,
        "seeds": sorted({seed for s in summaries for seed in s.seeds}),
        "phases": [_directions(phase) for phase in runs[0].phases],
        "sets": [{"name": name, "methods": methods} for name, methods in shown.items()],
        "tables": [asdict(table) for table in made],
        "runs": [
            {
                "name": run.name,
                "file": run.path.name,
                "command": run.command,
                "machine": run.machine,
                "seconds": _finite(run.seconds),
                "seeds": sorted({row.seed for row in run.rows}),
                "versions": _finite(run.versions),
                "data": _finite(run.data),
                "config": _finite(run.config),
            }
            for run in runs
        ],
    }


def _row(s: Summary) -> tuple[str, str, str]:
    """What a row has in common with itself under the other mask."""
    return s.method, s.decision, s.variant


def _unique(own: Sequence[Summary], masked: dict[tuple[str, str, str], Summary]) -> list[dict[str, Any]]:
    """The methods of one set as the page draws them, each with an id of its own for the address.

    masked: the same rows where only directions learned so far may be answered, if that was measured.
    """
    drawn: dict[str, dict[str, Any]] = {}
    for s, style in zip(own, figures.styles(own), strict=True):
        name = ":".join(part for part in (s.method, s.decision, s.variant) if part)
        key = name if name not in drawn else f"{name}:{len(drawn)}"
        drawn[key] = {
            "id": key,
            "label": s.label,
            "colour": style.colour,
            "dash": style.dash,
            "n_seeds": len(s.seeds),
            "masks": {"": _values(s)} | ({"taught": _values(masked[_row(s)])} if _row(s) in masked else {}),
        }
    return list(drawn.values())


def _values(s: Summary) -> dict[str, Any]:
    """What the pictures show. intervals: of ACC after each phase, where there are hits by recording."""
    shown = {
        field: {
            view: {m: _rounded(values[m].tolist(), _DIGITS[m]) for m in METRICS}
            for view, values in getattr(s, field).items()
        }
        for field in ("curves", "matrices", "sectors")
    }
    known = s.recordings.curves if s.recordings else {}
    ends = {view: known[n] for view, n in VIEWS.items() if n in known}
    return shown | {
        "intervals": {view: {"acc": _rounded(each.tolist(), _DIGITS["acc"])} for view, each in ends.items()}
    }


def _directions(phase: Sequence[int]) -> str:
    """What a phase holds: "36-71°" where its directions are neighbours."""
    if phase and sorted(phase) == list(range(min(phase), max(phase) + 1)):
        return f"{min(phase)}-{max(phase)}°"
    return f"{len(phase)} directions"


def _rounded(value: Any, digits: int) -> Any:
    if isinstance(value, list):
        return [_rounded(item, digits) for item in value]
    return round(value, digits) if math.isfinite(value) else None


def _finite(value: Any) -> Any:
    """JSON that JavaScript can read too: NaN and infinity as text."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _origin(runs: Sequence[Run]) -> str:
    """Where the numbers come from, as Markdown."""
    lines = ["## How these were made", ""]
    for run in runs:
        seeds = ", ".join(str(seed) for seed in sorted({row.seed for row in run.rows}))
        versions = ", ".join(f"{name} {version}" for name, version in run.versions.items())
        facts = f"{run.name}: {run.command}; data {run.data_name}; seeds {seeds}; {versions}; {run.machine}"
        lines.append(f"- {markdown_text(facts)}")
    lines.append(f"- Paper: {paper.SOURCE}")
    return "\n".join(lines) + "\n"


def _pictures(summaries: Sequence[Summary], out: Path) -> list[Path]:
    """The pictures, of the methods themselves or, where there are only variants, of all that is clean."""
    import matplotlib as mpl

    anywhere = [s for s in summaries if not s.mask] or list(summaries)
    shown = plain(anywhere) or [s for s in anywhere if s.condition == "clean"] or anywhere
    curves = figures.accuracy_curves(shown)
    drawn = {
        "accuracy.png": curves,
        "accuracy.svg": curves,
        "matrix.png": figures.accuracy_matrices(shown),
        "polar.png": figures.error_polar(shown),
    }
    # A fixed salt: the same results give the same file. A name may have letters that the font lacks.
    with mpl.rc_context({"svg.hashsalt": "tytoalba"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        for name, figure in drawn.items():
            save_figure(figure, out / name)
    return [out / name for name in drawn]
