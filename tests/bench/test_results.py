"""Averages by hand, files that are not what they claim; `document` is a small result file for all tests."""

from __future__ import annotations

import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tytoalba.bench import continual as continual
from tytoalba.bench import formats as formats
from tytoalba.bench import page as page
from tytoalba.bench import paper as paper
from tytoalba.bench import results as results
from tytoalba.bench import summary as summary
from tytoalba.bench import tables as tables
from tytoalba.errors import DataError

K = 10
FRAMES = {("test", 1): 400, ("test", 2): 90, ("human", 1): 30, ("human", 2): 10}
LEVELS = {"joint": (0.97, 0.0), "finetune": (0.95, 0.85), "icarl": (0.9, 0.3), "ssl-cil": (0.94, 0.02)}
KEEPS = {"joint": "everything", "icarl": "exemplars"}


def row(method: str, seed: int, part: str = "test", n_sources: int = 1, **other: Any) -> dict[str, Any]:
    """A plausible row: what is forgotten is lost of the level; human N=2 has no frames in phases 0 and 4."""
    rng = np.random.default_rng([seed, n_sources, len(method), part == "human"])
    counts = rng.multinomial(FRAMES[part, n_sources], np.ones(K) / K) + 1
    if (part, n_sources) == ("human", 2):
        counts[[0, 4]] = 0
    level, lost = LEVELS.get(method, (0.8, 0.1))
    old = np.maximum(0, np.subtract.outer(np.arange(K), np.arange(K)))  # (after, on)
    acc = level * (1 - lost * (1 - 0.8**old)) - 0.2 * (n_sources - 1) + 0.01 * rng.standard_normal((K, K))
    acc = np.clip(acc - (0.4 if other.get("condition", "clean") != "clean" else 0), 0, 1)
    shown = (np.tril(np.ones((K, K))) > 0) & (counts > 0)

    def listed(matrix: Any) -> list[list[float | None]]:
        return [
            [round(float(x), 4) if s else None for x, s in zip(*r, strict=True)]
            for r in zip(matrix, shown, strict=True)
        ]

    around = np.clip(acc[-1].mean() + 0.1 * np.sin(np.arange(24) / 3), 0, 1)
    hole = {"acc": [None, *around[1:].tolist()], "mae": [None, *(60 * (1 - around[1:])).tolist()]}
    return {
        "method": method, "decision": "", "variant": "", "seed": seed, "condition": "clean", "part": part,
        "n_sources": n_sources, "counts": counts.tolist(), "acc": listed(acc), "mae": listed(60 * (1 - acc)),
        "sectors": hole if other.get("condition", "clean") == "clean" else None,
        "keeps": KEEPS.get(method, "nothing"),
        "kept_bytes": {"W": 4_000_000} | ({"exemplars.X": 4_400_000} if method == "icarl" else {}),
        "learn_seconds": [1.5] * K, "options": {"epochs": 3},
    } | other  # fmt: skip


def recorded(made: dict[str, Any], mask: str = "", **other: Any) -> dict[str, Any]:
    """A row as it is measured today: hits by recording, which its accuracies come from, and the rest."""
    counts, n = made["counts"], made["n_sources"]
    kept: dict[str, list[Any]] = {"number": [], "phase": [], "frames": [], "hits": []}
    acc = [list(line) for line in made["acc"]]
    for j, count in enumerate(counts):
        first = count - count // 3
        for number, frames in ((j // 2, first), (7 + j, count - first)):
            if frames:
                level = 0.1 * (number % 3 - 1)
                shares = [min(1.0, max(0.0, acc[i][j] + level)) for i in range(j, len(counts))]
                kept["number"].append(number)
                kept["phase"].append(j)
                kept["frames"].append(frames)
                kept["hits"].append([round(n * frames * share) for share in shares])
    for i, line in enumerate(acc):
        for j in range(i + 1):
            mine = [c for c, phase in enumerate(kept["phase"]) if phase == j]
            if mine:
                line[j] = round(sum(kept["hits"][c][i - j] for c in mine) / (n * counts[j]), 4)
    by_angle: dict[str, Any] = {"front_back": {"confused": 3, "clear": 40}}
    if n == 2:
        apart = {"frames": [0, 5, 9, 9, 2], "acc": [None, 0.5, 0.6, 0.7, 1.0], "mae": [None, 9.0, 8.0, 7, 1]}
        by_angle = {"separation": apart}
    sectors = (made["sectors"] or {}) | {"frames": [0, *range(1, 24)]} if made["sectors"] else None
    return made | {
        "mask": mask, "had": ["windows", "bands"], "answer_seconds": 2e-4, "acc": acc, "recordings": kept,
        "sectors": sectors,
    } | by_angle | other  # fmt: skip


def fair(n_seeds: int = 2) -> dict[str, Any]:
    """Rows as they are measured today: both masks, hits by recording, Joint and the prior among them."""
    prior = {"options": {"learns": False}, "variant": "learns=False", "kept_bytes": {"prior": 64}}
    taught = {"options": {"answers": "anywhere"}, "kept_bytes": {"prior": 64, "G": 640}}
    named, swept = {"variant": "from the prior"}, {"variant": "eta=1"}
    listed: tuple[tuple[str, dict[str, Any]], ...] = (
        ("joint", {}),
        ("joint", named),
        ("tyto", prior),
        ("tyto", taught),
        ("finetune", {}),
        ("ssl-cil", swept),
    )
    rows = []
    for seed in range(n_seeds):
        for n in (1, 2):
            test = {"counts": row("joint", 0, n_sources=n)["counts"]}  # the frames are those of every row
            for mask in ("", "taught"):
                rows += [recorded(row(m, seed, n_sources=n) | test | other, mask) for m, other in listed]
    return document(1) | {"rows": rows}


def document(n_seeds: int = 3) -> dict[str, Any]:
    """Three seeds, four methods and a decision, ten phases, noise and variants."""
    rows = []
    for seed in range(n_seeds):
        for part, n in FRAMES:
            rows += [
                row(method, seed, part, n) for method in ("ssl-cil", "finetune", "joint", "icarl", "mine")
            ]
            rows.append(row("icarl", seed, part, n, decision="output"))
        for snr in (-20, -10, 0, 10):
            for method in ("ssl-cil", "joint", "mine"):
                rows.append(row(method, seed, n_sources=1, condition=f"white {snr} dB"))
        rows.append(row("ssl-cil", seed, condition="babble 0 dB"))
        for variant in ("n_features=20000", "n_features=1000", "eta=1", "eta=0.1", "order=shuffled"):
            rows += [row("ssl-cil", seed, n_sources=n, variant=variant) for n in (1, 2)]
    return {
        "format": "tytoalba-results", "version": 1, "name": "table1",
        "config": {"bench": {"seeds": [0, 1, 2]}}, "versions": {"tytoalba": "0.1.0", "numpy": "2.0"},
        "machine": "a machine", "command": "tyto bench x.toml",
        "seconds": 12.5, "data": {"name": "simulated:twin", "n_train": 100, "n_test": 50},
        "phases": [list(range(36 * k, 36 * k + 36)) for k in range(K)], "rows": rows,
    }  # fmt: skip


def saved(folder: Path, content: Any, name: str = "table1.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return path


def summaries(folder: Path, content: Any) -> list[summary.Summary]:
    return summary.summarise(results.load(saved(folder, content)))


def tiny(seed: int = 0, n: int = 1, counts: tuple[int, int] = (30, 10), **other: Any) -> dict[str, Any]:
    """Two phases: [[1, -], [0.5, 0.75]], 20 degrees less than perfect."""
    acc = [[1.0, None], [0.5, 0.75]]
    mae = [[0.0, None], [10.0, 4.0]]
    made = row("icarl", seed, n_sources=n)
    return (
        made
        | {"counts": list(counts), "acc": acc, "mae": mae, "learn_seconds": [1, 2], "sectors": None}
        | other
    )


def two_phases(*rows: dict[str, Any]) -> dict[str, Any]:
    return document(1) | {"phases": [[0, 1], [2, 3]], "rows": list(rows)}


# ---- averages ----


def test_one_subset_by_hand(tmp_path: Path) -> None:
    (s,) = summaries(tmp_path, two_phases(tiny()))
    assert s.label == "iCaRL"
    cell = s.subsets["test", 1]
    assert cell.acc.mean == pytest.approx(100 * (1 + (30 * 0.5 + 10 * 0.75) / 40) / 2)
    assert cell.mae.mean == pytest.approx((0 + (30 * 10 + 10 * 4) / 40) / 2)
    assert math.isnan(cell.acc.std)
    assert cell.n_frames == 40
    assert s.last.acc.mean == pytest.approx(56.25)
    assert s.forgetting.mean == pytest.approx(50)
    assert s.transfer.mean == pytest.approx(-50)
    np.testing.assert_allclose(s.curves["overall"]["acc"][0], [100, 56.25])
    np.testing.assert_allclose(s.matrices["n1"]["mae"], np.array([[0, np.nan], [10, 4]]))
    assert "n2" not in s.curves
    assert np.isnan(s.sectors["overall"]["acc"]).all()


def test_overall_weights_subsets_by_frames_and_spread_is_over_seeds(tmp_path: Path) -> None:
    half = [[0.5, None], [0.5, 0.5]]
    rows = [tiny(), tiny(n=2, counts=(5, 5), acc=half), tiny(seed=1, acc=half), tiny(seed=1, n=2, acc=half)]
    (s,) = summaries(tmp_path, two_phases(*rows))
    one = (100 + 56.25) / 2
    assert s.overall.acc.by_seed == pytest.approx({0: (40 * one + 10 * 50) / 50, 1: 50})
    assert s.overall.acc.std == pytest.approx(abs(s.overall.acc.by_seed[0] - 50) / math.sqrt(2))
    curve = s.curves["overall"]["acc"]
    np.testing.assert_allclose(curve[0], [(90 + 50) / 2, ((40 * 56.25 + 10 * 50) / 50 + 50) / 2])
    assert curve[1, 0] == pytest.approx(40 / math.sqrt(2))
    assert (s.overall.n_frames, s.seeds) == (50, (0, 1))


def test_overall_of_the_paper_is_ours() -> None:
    frames = (178_000, 29_000, 788, 141)
    for method in ("srp", "sslcil", "icarl", "finetune"):
        cells = paper.TABLE_1[method].values()
        mae = sum(n * cell.mae for n, cell in zip(frames, cells, strict=True)) / sum(frames)
        assert mae == pytest.approx(paper.OVERALL[method].mae, abs=0.3)
    for method, cells_by_snr in paper.NOISE.items():
        plain = np.mean([cell.mae for cell in cells_by_snr.values()])
        assert plain == pytest.approx(paper.NOISE_OVERALL[method].mae, abs=0.02)


def test_a_seed_that_lacks_a_subset_is_left_out_of_overall_only(tmp_path: Path) -> None:
    (s,) = summaries(tmp_path, two_phases(tiny(), tiny(n=2), tiny(seed=1)))
    assert list(s.overall.acc.by_seed) == [0]
    assert list(s.subsets["test", 1].acc.by_seed) == [0, 1]
    assert s.seeds == (0, 1)


def test_empty_phases_and_empty_rows(tmp_path: Path) -> None:
    gap = tiny(counts=(0, 10), acc=[[None, None], [None, 0.75]], mae=[[None, None], [math.nan, 4.0]])
    nothing = tiny(n=2, counts=(0, 0), acc=[[None] * 2] * 2, mae=[[None] * 2] * 2)
    (s,) = summaries(tmp_path, two_phases(gap, nothing))
    assert s.overall.acc.mean == pytest.approx(75)
    assert math.isnan(s.forgetting.mean)
    assert list(s.subsets) == [("test", 1)]
    with pytest.raises(DataError, match="no row has a test frame"):
        summaries(tmp_path, two_phases(nothing))


def test_whole_document(tmp_path: Path) -> None:
    found = summaries(tmp_path, document())
    order = [s.label for s in found if s.condition == "clean" and not s.variant]
    assert order == ["Joint", "Fine-tune", "iCaRL", "iCaRL (output)", "SSL-CIL", "mine"]
    for s in found:
        assert s.seeds == (0, 1, 2)
        assert np.isfinite([s.overall.acc.mean, s.overall.acc.std, s.forgetting.mean]).all()
    human = next(
        r for r in document(1)["rows"] if (r["part"], r["n_sources"], r["method"]) == ("human", 2, "joint")
    )
    curve = continual.seen_accuracy(np.array(human["acc"], dtype=float), human["counts"])
    assert np.isnan(curve[0])
    assert found[0].subsets["human", 2].acc.by_seed[0] == pytest.approx(100 * np.nanmean(curve))
    assert {s.noise for s in found if s.noise} >= {("white", -10.0), ("babble", 0.0)}
    assert {s.setting for s in found if s.variant} >= {("eta", "0.1"), ("order", "shuffled")}
    assert replace(found[0], variant="eta=1, order=shuffled").setting == ("eta, order", "1, shuffled")
    assert replace(found[0], variant="odd").setting == ("variant", "odd")


# ---- several files ----


def test_same_run_joins_seeds_and_another_run_does_not_mix(tmp_path: Path) -> None:
    first = saved(tmp_path, two_phases(tiny()), "a.json")
    second = saved(tmp_path, two_phases(tiny(seed=1)), "b.json")
    other = saved(
        tmp_path, two_phases(tiny(seed=2), tiny(condition="white 0 dB")) | {"name": "noise"}, "c.json"
    )
    found = summary.summarise(results.load([first, second, other]))
    assert [(s.condition, s.run, s.seeds) for s in found] == [
        ("clean", "table1", (0, 1)),
        ("white 0 dB", "noise", (0,)),
    ]
    with pytest.raises(DataError, match="measured twice"):
        summary.summarise(results.load([first, first]))


def test_other_data_or_phases_are_not_mixed(tmp_path: Path) -> None:
    first = saved(tmp_path, two_phases(tiny()), "a.json")
    other = saved(tmp_path, two_phases(tiny()) | {"data": {"name": "sslr"}}, "b.json")
    with pytest.raises(DataError, match=r"b\.json.*separate folders"):
        results.load([first, other])
    with pytest.raises(DataError, match="no result file"):
        results.load([])


# ---- files that are not what they claim ----

BAD = [
    ("version", 2, "version must be 1"),
    ("format", "x", "format must be 'tytoalba-results'"),
    ("rows", [], "rows is empty"),
    ("rows", {}, "rows must be a list"),
    ("phases", [[400]], "whole number from 0 to 359"),
    ("phases", [], "1 to 360 phases"),
    ("name", 3, "name must be text"),
    ("name", "a\nb", "printable"),
    ("command", "\ud800", "lone surrogate"),
    ("config", json.loads("[" * 60 + "]" * 60), "nested"),
    ("seconds", -1, "from 0 to"),
    ("versions", None, "versions must be an object"),
]
BAD_ROWS = [
    ("part", "elsewhere", r"rows\[0\].part must be 'test' or 'human'"),
    ("n_sources", True, "n_sources must be 1 or 2"),
    ("counts", [1], "list of 2"),
    ("counts", [1, -1], r"counts\[1\] must be a whole number"),
    ("counts", [1, 1.5], "whole number"),
    ("acc", [[1.5, None], [0, 0]], r"acc\[0\]\[0\] must be a number from 0 to 1"),
    ("acc", [[1, None], [None, 0]], r"acc\[1\]\[0\] must be a number, as phase 0"),
    ("acc", [[1, None]], "list of 2"),
    ("mae", [[math.inf, None], [0, 0]], "from 0 to 180"),
    ("mae", [["1", None], [0, 0]], "number or null"),
    ("sectors", {"acc": [0.5] * 24}, "lacks 'mae'"),
    ("sectors", {"acc": [0.5], "mae": [1]}, "list of 24"),
    ("keeps", "secrets", "keeps must be"),
    ("kept_bytes", {"W": -1}, "whole number"),
    ("seed", 2**70, "whole number"),
    ("method", "x" * 201, "200 printable"),
    ("mask", "some", "mask must be '' or 'taught'"),
    ("mask", True, "mask must be"),
    ("had", "windows", "had must be a list"),
    ("had", ["spies"], r"had\[0\] must be 'simulations' or"),
    ("had", ["bands", "bands"], "list without twins"),
    ("answer_seconds", -1, "answer_seconds must be a number"),
    ("front_back", {"confused": 3, "clear": 2}, "confused must be a whole number from 0 to 2"),
    ("front_back", [1, 2], "front_back must be an object"),
    ("separation", {"frames": [1] * 5, "acc": [0.5] * 5}, "lacks 'mae'"),
    ("separation", {"frames": [1] * 6, "acc": [0.5] * 5, "mae": [1] * 5}, "list of 5"),
    ("separation", {"frames": [1] * 5, "acc": [None] * 5, "mae": [1] * 5}, "null where there are none"),
    ("sectors", {"acc": [0.5] * 24, "mae": [1] * 24, "frames": [-1] * 24}, "whole number"),
    ("recordings", [], "recordings must be an object"),
    ("recordings", {"number": [1, 2]}, "lacks 'phase'"),
]
RIGHT = {"number": [1, 1, 2], "phase": [0, 1, 0], "frames": [20, 10, 10], "hits": [[20, 8], [7], [10, 7]]}
"""Recordings of a row as `tiny` has it, but for two hits of phase 1."""
BAD_RECORDINGS = [
    ("number", [1, 1], "list of 2"),
    ("number", [1, 1, -2], "whole number"),
    ("number", [1, 1, 2.0], "whole number"),
    ("number", [1, 1, True], "whole number"),
    ("number", [1, 1, 1], "without twins"),
    ("phase", [0, 2, 0], r"phase\[1\] must be a whole number from 0 to 1"),
    ("phase", [0, 1], "list of 3"),
    ("frames", [20, 10, 11], "as many frames a phase as counts has"),
    ("frames", [2**80, 10, 10], "whole number"),
    ("hits", [[20, 8], [7]], "list of 3"),
    ("hits", [[20, 8], [7, 7], [10, 7]], "list of 1 to 1, which goes on"),
    ("hits", [[20, 8], [], [10, 7]], "list of 1 to 1"),
    ("hits", [[21, 8], [7], [10, 7]], "whole number from 0 to 20"),
    ("hits", [[20, 9], [7], [10, 7]], r"the hits that acc\[1\]\[0\] = 0.5000 is made of"),
    ("hits", "many", "list of 3"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_refuses_document(tmp_path: Path, name: str, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=rf"table1\.json: .*{message}"):
        results.load_results(saved(tmp_path, two_phases(tiny()) | {name: value}))


@pytest.mark.parametrize(("name", "value", "message"), BAD_ROWS)
def test_refuses_row(tmp_path: Path, name: str, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=rf"table1\.json: .*{message}"):
        results.load_results(saved(tmp_path, two_phases(tiny(**{name: value}))))


def with_recordings(**other: Any) -> dict[str, Any]:
    acc = [[1.0, None], [0.5, 0.7]]
    return two_phases(tiny(acc=acc, recordings=RIGHT | other))


def test_recordings_are_read(tmp_path: Path) -> None:
    (read,) = results.load_results(saved(tmp_path, with_recordings())).rows
    assert read.recordings is not None
    np.testing.assert_array_equal(read.recordings.hits, [[20, 8], [0, 7], [10, 7]])
    np.testing.assert_allclose(read.recordings.accuracy(), read.acc)
    short = with_recordings(hits=[[10], [7], [10]])  # as many after the second phase
    short["rows"][0]["acc"] = [[0.6667, None], [0.6667, 0.7]]
    (read,) = results.load_results(saved(tmp_path, short)).rows
    assert read.recordings is not None
    np.testing.assert_array_equal(read.recordings.hits, [[10, 10], [0, 7], [10, 10]])


@pytest.mark.parametrize(("name", "value", "message"), BAD_RECORDINGS)
def test_refuses_recordings(tmp_path: Path, name: str, value: Any, message: str) -> None:
    with pytest.raises(DataError, match=rf"table1\.json: rows\[0\]\.recordings.*{message}"):
        results.load_results(saved(tmp_path, with_recordings(**{name: value})))


def test_refuses_more_recordings_than_memory_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, with_recordings())
    for name, most in (("MOST_RECORDINGS", 1), ("MOST_HITS", 5)):
        with monkeypatch.context() as patch:
            patch.setattr(results, name, most)
            with pytest.raises(DataError, match=r"recordings\.number must be of at most"):
                results.load_results(path)
    results.load_results(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format": 1}', "[" * 100_000, "1" * 5000, "\x00"])
def test_refuses_text(tmp_path: Path, text: str) -> None:
    with pytest.raises(DataError, match=r"table1\.json"):
        results.load_results(saved(tmp_path, text))


def test_refuses_other_files(tmp_path: Path) -> None:
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe{")
    for path in (tmp_path / "bytes.json", tmp_path, tmp_path / "missing.json"):
        with pytest.raises(DataError, match=path.name):
            results.load_results(path)
    with pytest.raises(DataError, match="measured twice"):
        results.load_results(saved(tmp_path, two_phases(tiny(), tiny())))


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["", "eta=1", "a 0 dB"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_mutated_files_are_refused_or_summarised(tmp_path: Path, data: st.DataObject) -> None:
    rows = [tiny(), tiny(n=2), tiny(seed=1), tiny(condition="white 0 dB"), recorded(tiny(seed=3), "taught")]
    content: Any = copy.deepcopy(two_phases(*rows))
    for _ in range(data.draw(st.integers(1, 3))):
        at = content
        while True:  # walk to some place and put something else there
            keys = list(at) if isinstance(at, dict) else list(range(len(at)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if isinstance(at[key], dict | list) and data.draw(st.integers(0, 4)):
                at = at[key]
                continue
            if data.draw(st.booleans()):
                at[key] = data.draw(JUNK)
            else:
                del at[key]
            break
    path = saved(tmp_path, content)
    try:
        runs = results.load(path)
        found = summary.summarise(runs)
    except DataError as error:
        if path.name in str(error):
            return
        raise AssertionError("the message does not name the file") from error
    made = tables.tables(runs, found)
    assert formats.markdown(made) + formats.latex(made)
    assert formats.csv_rows(found)
    assert page.page(runs, found, made)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[" * 100_000, "nested more than 50 deep"),
        ('{"a":' * 100_000, "nested more than 50 deep"),
        ("1" * 5000, "too many digits"),
        ("\udcff", "not a JSON file in UTF-8"),
        ("{", "was it cut short"),
    ],
)
def test_hostile_files_are_refused_in_words(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "x.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(DataError, match=why):
        results.load_results(tmp_path / "x.json")
