"""Tables of what was measured, with the paper's numbers beside ours.

The first say what every row had and how sure its numbers are (`fair_tables`); a column called "paper" holds
the paper's numbers for the column before it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

from tytoalba.bench import paper as paper
from tytoalba.bench.cells import (
    FRAMES_KEPT,
    NONE,
    PAPER,
    WEIGHTED,
    Table,
    both,
    cut,
    ends,
    masked,
    mean_cell,
    milliseconds,
    only_acc,
    pm,
    reported,
    short,
    size,
)
from tytoalba.bench.fair_tables import direction_tables, fair_tables, plain
from tytoalba.bench.results import Run
from tytoalba.bench.summary import Summary, summarise

_EXPANSION_NAMES = ("n_features", "n_expanded", "expansion", "D")


_SUBSET_NAMES = {("test", 1): "loudsp. N=1", ("test", 2): "loudsp. N=2"} | {
    ("human", n): f"human N={n}" for n in (1, 2)
}


def tables(runs: Sequence[Run], summaries: Sequence[Summary]) -> list[Table]:
    """Every table that the results can fill, table 1 first."""
    anywhere = [s for s in summaries if not s.mask]
    found = [*fair_tables(summaries), table_1(anywhere), after_table(anywhere)]
    found += [*direction_tables(anywhere), memory_table(anywhere), context_table(anywhere)]
    found += [*noise_tables(anywhere), *variant_tables(anywhere)]
    of = f" Data: {runs[0].data_name or 'of unknown name'}."
    found = [replace(t, note=f"{t.note}{of}") if t.name.startswith("fair") else t for t in found]
    full = [table for table in found if table.rows]
    if _is_sslr(runs[0]):
        return full
    data = runs[0].data_name
    caution = f"Ours: {data or 'data of unknown name'}. The paper: SSLR. Compare the order, not the digits."
    return [replace(t, note=f"{t.note} {caution}") if PAPER in t.header else t for t in full]


def summary(run: Run) -> Table:
    """One run at a glance, for a terminal: every method and variant in clean sound, a line each."""
    found = summarise([run])
    anywhere = [s for s in found if not s.mask]
    clean = [s for s in anywhere if s.condition == "clean"] or anywhere
    rows = []
    for s in clean:
        theirs = paper.OVERALL.get(paper.key(s.method)) if s.is_plain else None
        cells = [short(s.subsets.get(("test", n))) for n in (1, 2)]
        forgotten = NONE if math.isnan(s.forgetting.mean) else f"{s.forgetting.mean:.1f}"
        paper_acc = f"{theirs.acc:.1f}" if theirs else NONE
        rows.append([cut(s.label), *cells, short(s.overall), paper_acc, forgotten, FRAMES_KEPT[s.keeps]])
    n_seeds = max(len(s.seeds) for s in clean)
    note = (
        f"MAE in degrees / ACC in % (within 5 degrees): mean over {len(run.phases)} phases of the test on "
        f"all directions learned so far; {n_seeds} seed{'s' * (n_seeds > 1)}. Forgets: points of ACC lost on "
        "earlier phases. Keeps: training frames kept from phase to phase."
    )
    note += "" if _is_sslr(run) else " Paper: its overall ACC on SSLR, other data: compare the order only."
    header = ["method", "one source", "two sources", "overall", PAPER, "forgets", "keeps"]
    return Table("summary", f"{run.path.stem}: {run.data_name}", header, rows, f"{note}{masked(clean)}")


def table_1(summaries: Sequence[Summary]) -> Table:
    """Mean over the phases on each subset: the paper's rows in its order, then the methods only we have."""
    own = plain(summaries)
    present = [subset for subset in paper.SUBSETS if any(subset in s.subsets for s in own)]
    rows = []
    for label, key, s in _lines(own, paper.TABLE_1):
        theirs = paper.TABLE_1.get(key, {})
        pairs = [(both(s.subsets.get(n) if s else None), reported(theirs.get(n))) for n in present]
        ours = [both(cell) for cell in ((s.overall, s.overall_86_14) if s else (None, None))]
        keeps = [s.keeps, size(sum(s.kept_bytes.values()))] if s else [NONE, NONE]
        cells = [cell for pair in pairs for cell in pair]
        rows.append([label, *cells, *ours, reported(paper.OVERALL.get(key)), *keeps])
    header = [part for subset in present for part in (_SUBSET_NAMES[subset], PAPER)]
    note = (
        "MAE in degrees / ACC in % (within 5 degrees), mean over the phases of the test on the phases 0..k, "
        "mean ± standard deviation over seeds. Overall weights the subsets by their frames; overall (86:14) "
        "weights one and two sources as the paper's frames do. Keeps: of the training data, from phase to "
        "phase. Carries: all that the method has after the last phase, its model included."
    )
    header = ["method", *header, "overall", WEIGHTED, PAPER, "keeps", "carries"]
    return Table("table1", "Accuracy and error", header, rows if own else [], f"{note}{masked(own)}")


def after_table(summaries: Sequence[Summary]) -> Table:
    """What is left after the last phase."""
    rows = [
        [
            s.label,
            both(s.last),
            both(s.last_86_14),
            pm(s.forgetting, 1),
            pm(s.transfer, 1),
            pm(s.newest, 1),
            pm(s.older, 1),
            str(len(s.seeds)),
        ]
        for s in plain(summaries)
    ]
    note = (
        "MAE in degrees / ACC in % on all phases after the last, weighted by our frames and as the paper's "
        "(86:14); forgetting (from the best before the last phase) and backward transfer in points of ACC. "
        "Newest: ACC in % on the phase just learned; older: on those before it; both means over the phases."
    )
    header = ["method", "overall", WEIGHTED, "forgetting", "backward transfer", "newest", "older", "seeds"]
    return Table("after", "After the last phase", header, rows, f"{note}{masked(plain(summaries))}")


def memory_table(summaries: Sequence[Summary]) -> Table:
    """What each method carries from phase to phase, and the time it takes, beside how good it is."""
    rows = []
    for s in plain(summaries):
        largest = sorted(s.kept_bytes.items(), key=lambda item: -item[1])[:2]
        names = ", ".join(f"{name} {size(n)}" for name, n in largest) or NONE
        more = f", {len(s.kept_bytes) - 2} more" if len(s.kept_bytes) > 2 else ""
        taken = [pm(s.learn_seconds, 1), milliseconds(s.answer_seconds)]
        carried = size(sum(s.kept_bytes.values()))
        rows.append([s.label, only_acc(s.last), s.keeps, carried, *taken, names + more])
    note = (
        "Keeps: what of the training data itself is carried from phase to phase. In all: everything that the "
        "method's memory lists after the last phase, model and statistics included. Learns: seconds for all "
        "phases; answers: milliseconds a frame, on the machine and with the work beside it that the run had. "
        "ACC: overall, in %, after the last phase."
    )
    header = ["method", "ACC", "keeps", "in all", "learns (s)", "answers (ms)", "largest"]
    return Table("memory", "Memory, privacy and time", header, rows, note)


def context_table(summaries: Sequence[Summary]) -> Table:
    """Scores averaged over neighbouring frames: overall ACC by how many on each side."""
    found = {(s.label, int(number)): s for s in summaries if not s.swept and (number := _neighbours(s))}
    counts = sorted({n for _, n in found})
    rows = []
    for s in plain(summaries):
        cells = [only_acc(found[s.label, n].overall) if (s.label, n) in found else NONE for n in counts]
        if set(cells) - {NONE}:
            rows.append([s.label, only_acc(s.overall), *cells])
    note = (
        "ACC in %, mean over the phases, subsets by their frames; scores averaged over neighbouring frames, "
        "that many on each side."
    )
    header = ["method", "one frame", *(f"{n} on each side" for n in counts)]
    return Table("context", "Neighbouring frames", header, rows, note)


def _neighbours(s: Summary) -> str:
    found = re.fullmatch(r"context ([1-9]\d{0,4})", s.condition)
    return found[1] if found else ""


def noise_tables(summaries: Sequence[Summary]) -> list[Table]:
    """One table for each kind of noise: methods by SNR."""
    kinds: dict[str, dict[tuple[str, str, str], dict[float, Summary]]] = {}
    for s in summaries:
        if s.noise and not s.swept:
            kind, snr = s.noise
            kinds.setdefault(kind, {}).setdefault((s.method, s.decision, s.variant), {})[snr] = s
    return [_noise_table(kind, by_method) for kind, by_method in kinds.items()]


def _noise_table(kind: str, by_method: dict[tuple[str, str, str], dict[float, Summary]]) -> Table:
    """Overall MAE and ACC at each SNR, and their plain mean over the SNRs, as the paper has it."""
    snrs = sorted({snr for own in by_method.values() for snr in own})
    theirs = paper.NOISE if kind == paper.NOISE_KIND else {}
    rows = []
    for label, key, first in _lines([next(iter(own.values())) for own in by_method.values()], theirs):
        own = by_method[first.method, first.decision, first.variant] if first else {}
        cells = [own[snr].overall if snr in own else None for snr in snrs]
        shown = [both(cell) for cell in (*cells, mean_cell(cells))]
        if theirs:
            same = theirs.get(key, {})
            whole = paper.NOISE_OVERALL.get(key) if set(snrs) == set(paper.SNRS) else None
            beside = [*(same.get(int(snr)) if snr == int(snr) else None for snr in snrs), whole]
            shown = [x for ours, cell in zip(shown, beside, strict=True) for x in (ours, reported(cell))]
        rows.append([label, *shown])
    columns = [*(f"{snr:g} dB" for snr in snrs), "overall"]
    header = [part for column in columns for part in ([column, PAPER] if theirs else [column])]
    note = (
        "Learned clean, tested in noise: MAE in degrees / ACC in %; overall is the plain mean over the SNRs."
    )
    if theirs:
        note += " The paper does not say which noise it used; we read it as white."
    return Table(f"noise-{kind}", f"Noise: {kind}", ["method", *header], rows, note)


def variant_tables(summaries: Sequence[Summary]) -> list[Table]:
    """One table for each setting that was varied: expansion, eta, order of the phases..."""
    varied = [s for s in summaries if s.swept and s.condition == "clean"]
    names = dict.fromkeys(s.setting[0] for s in varied)
    return [_variant_table(name, [s for s in varied if s.setting[0] == name]) for name in names]


def _variant_table(name: str, varied: list[Summary]) -> Table:
    expansion = name in _EXPANSION_NAMES
    theirs = paper.EXPANSION if expansion else paper.ETA if name in ("ridge", "eta") else {}
    methods = [(s.method, s.decision) for s in varied]
    measured = any(s.recordings for s in varied)
    rows = []
    for s in sorted(varied, key=lambda s: (methods.index((s.method, s.decision)), _rank(s.setting[1]))):
        value = _number(s.setting[1]) if paper.key(s.method) == "sslcil" and not s.decision else None
        known = theirs.get(value) if value is not None else None
        label = s.label.removesuffix(f", {s.variant}")
        row = [label, s.setting[1], both(s.last), pm(s.forgetting, 1)]
        row += [ends(s, "last_overall"), ends(s, "overall")] if measured else []
        row += [both(s.overall), reported(known)]
        rows.append(row if theirs else row[:-1])
    header = ["method", name, "after the last phase", "forgetting"]
    header += ["95 %, last", "95 %, overall"] if measured else []
    header += ["overall", PAPER]
    title = "Size of the expansion" if expansion else name[:1].upper() + name[1:]
    note = (
        "MAE in degrees / ACC in %, mean ± standard deviation over seeds. Overall: mean over the phases, "
        "subsets weighted by frames. Forgetting in points of ACC."
    )
    note += " 95 %: the interval of ACC by recording, after the last phase and overall." if measured else ""
    return Table(f"variant-{name}", title, header if theirs else header[:-1], rows, note)


def _lines(own: Sequence[Summary], known: Collection[str]) -> list[tuple[str, str, Summary | None]]:
    """Label, key and summary: the paper's rows in its order, ours or not, then those that only we have.

    The paper's numbers stand beside the method itself: the key of variants and other decisions is "".
    """
    lines: list[tuple[str, str, Summary | None]] = []
    for key in known:
        ours = [s for s in own if paper.key(s.method) == key]
        lines += [(s.label, key if s.is_plain else "", s) for s in ours]
        if not any(s.is_plain for s in ours):
            lines.insert(len(lines) - len(ours), (paper.name(key), key, None))
    return lines + [(s.label, "", s) for s in own if paper.key(s.method) not in known]


def _is_sslr(run: Run) -> bool:
    return "sslr" in run.data_name.lower()


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _rank(text: str) -> tuple[float, str]:
    """Numbers by size, then words."""
    number = _number(text)
    return (math.inf if number is None or math.isnan(number) else number, text)
