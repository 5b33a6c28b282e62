"""The page in a real browser: that it draws, follows its address, asks nobody for anything and stays safe."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bench import test_results as sample
from tytoalba.bench import page as page
from tytoalba.errors import DataError

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
without_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium on the PATH")


def needs_browser(test: Callable[..., None]) -> Any:
    """Mark a test as one that `.ci/run` runs after the suite, where there is a browser."""
    return pytest.mark.end_to_end(without_browser(test))


PICTURES = ["accuracy.png", "accuracy.svg", "matrix.png", "polar.png"]
FILES = [*PICTURES, "report.html", "rows.csv", "tables.md", "tables.tex"]
HOSTILE = (
    "</script><script>document.documentElement.dataset.broken=1</script><!--"
    "<img src=x onerror=alert(1)> {{data}}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "out"
    written = page.render(sample.saved(out.parent, sample.document()), out)
    assert sorted(path.name for path in written) == FILES
    assert sorted(path.name for path in out.iterdir()) == FILES
    return out


def dom(path: Path, address: str, folder: Path) -> str:
    """The document after its script has run."""
    assert BROWSER is not None
    options = (
        "--headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking "
        "--disable-component-update --disable-sync --virtual-time-budget=3000 --dump-dom"
    )
    run = subprocess.run(
        [BROWSER, *options.split(), f"--user-data-dir={folder / 'profile'}", f"{path.as_uri()}{address}"],
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    shown = run.stdout
    assert 'data-drawn="yes"' in shown, run.stderr[-2000:]
    assert "data-error" not in shown, re.findall(r'data-error="[^"]*"', shown)
    return shown


def body(shown: str) -> str:
    """What was drawn, without style and script."""
    return shown.split("<body", 1)[1].split("<script", 1)[0]


def drawn(shown: str, pattern: str) -> int:
    return len(re.findall(pattern, body(shown)))


# ---- the files ----


def test_pictures_are_pictures(folder: Path) -> None:
    for name in PICTURES:
        assert (folder / name).read_bytes().startswith(b"<?xml" if name.endswith("svg") else b"\x89PNG")


def test_the_same_results_give_the_same_files(tmp_path: Path) -> None:
    path = sample.saved(tmp_path, sample.two_phases(sample.tiny(), sample.tiny(seed=1)))
    for out in ("one", "two"):
        page.render([path], tmp_path / out)
    for name in FILES:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name


def test_nothing_is_written_for_a_bad_file(tmp_path: Path) -> None:
    bad = sample.saved(tmp_path, sample.document(1) | {"version": 9})
    with pytest.raises(DataError, match=r"table1\.json"):
        page.render(bad, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_page_asks_nobody(folder: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {
        "http://www.w3.org/2000/svg"
    }  # a name, not a place
    assert "default-src 'none'" in text
    assert set(re.findall(r'(?:src|href)="([^"]*)"', text)) == {"data:,"}
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|WebSocket|sendBeacon|import\(", text)


@pytest.mark.parametrize(
    "text", ["</script>", "<!--", "]]>", "&amp;", "\u2028\u2029", "\x00", "é漢", "{{data}}", "\\u003c"]
)
def test_embedded_text_comes_back(text: str) -> None:
    embedded = page.embed({text: text})
    assert not set(embedded) & set("<>&\u2028\u2029")
    assert embedded.isascii()
    assert json.loads(embedded) == {text: text}


@pytest.mark.parametrize(
    "own",
    [
        sample.tiny(condition="fan 0 dB"),
        sample.tiny(variant="order=shuffled"),
        sample.tiny(counts=(0, 10), acc=[[None] * 2, [None, 1]], mae=[[None] * 2, [None, 0]]),
    ],
    ids=["noise only", "variants only", "one phase tested"],
)
def test_little_is_enough(tmp_path: Path, own: dict[str, Any]) -> None:
    path = sample.saved(tmp_path, sample.two_phases(own))
    assert sorted(written.name for written in page.render(path, tmp_path / "out")) == FILES


# ---- in the browser ----


@needs_browser
def test_draws_curves_matrix_circle_and_tables(folder: Path, tmp_path: Path) -> None:
    shown = dom(folder / "report.html", "", tmp_path)
    assert drawn(shown, r'class="curve"') == 6
    assert drawn(shown, r'<td class="cell"') == 55
    assert drawn(shown, r'class="sector"') == 23  # one sector has no frames
    assert set(re.findall(r'data-table="([^"]+)"', shown)) == {
        *("fair", "fair-last", "directions", "table1", "after", "memory", "noise-white", "noise-babble"),
        *("variant-n_features", "variant-eta", "variant-order"),
    }
    assert "<dd>tyto bench x.toml</dd>" in body(shown)
    assert "[object" not in body(shown)
    assert "grey: not yet learned, or no test frames" in body(shown)
    assert 'data-state="overall acc"' in shown


@needs_browser
def test_follows_its_address(folder: Path, tmp_path: Path) -> None:
    shown = dom(folder / "report.html", "#method=icarl&view=n1&metric=mae&hide=joint&hide=mine", tmp_path)
    assert 'data-state="n1 mae"' in shown
    assert re.findall(r'class="curve" data-id="([^"]+)"', shown) == [
        "finetune",
        "icarl",
        "icarl:output",
        "ssl-cil",
    ]
    assert 'class="heat" data-method="icarl"' in shown
    assert "MAE around the circle: iCaRL" in shown
    assert drawn(shown, 'aria-pressed="false"') == 2 + 2 + 1 + 1  # hidden methods, other views, metric, mask
    assert "°" in shown
    variants = dom(folder / "report.html", "#set=eta&view=nonsense&metric=__proto__&method=none", tmp_path)
    assert re.findall(r'class="curve" data-id="([^"]+)"', variants) == ["ssl-cil:eta=1", "ssl-cil:eta=0.1"]


DRIVER = """<script>
const press = node => node.click();
press(document.querySelector('#legend [data-id="joint"]'));
press(document.querySelector('#view [data-value="n2"]'));
const method = document.getElementById("method");
method.value = "finetune"; method.dispatchEvent(new Event("change"));
const picture = document.querySelector("#curves svg"), box = picture.getBoundingClientRect();
picture.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + 60, clientY: box.top + 50}));
document.documentElement.dataset.hover = document.querySelector(".tip").textContent;
picture.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight"}));
document.documentElement.dataset.key = document.getElementById("spoken").textContent;
document.documentElement.dataset.address = location.hash;
</script>"""


@needs_browser
def test_answers_mouse_and_keys(folder: Path, tmp_path: Path) -> None:
    text = (folder / "report.html").read_text(encoding="utf-8")
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    driven = tmp_path / "driven.html"
    driven.write_text(text.replace("</body>", f"{DRIVER}</body>"), encoding="utf-8")
    shown = html.unescape(dom(driven, "", tmp_path))
    hover, key, address = (
        re.search(rf'data-{name}="([^"]*)"', shown) for name in ("hover", "key", "address")
    )
    assert hover is not None
    assert key is not None
    assert address is not None
    assert re.match(r"After phase 0.*SSL-CIL\d\d\.\d ± \d", hover[1])
    assert "Joint" not in hover[1]
    assert key[1].startswith("After phase 1: ")
    assert set(address[1][1:].split("&")) == {"view=n2", "metric=acc", "method=finetune", "hide=joint"}
    assert 'class="heat" data-method="finetune"' in shown


HOVER = """<script>
const hover = () => {
  const picture = document.querySelector("#curves svg"), box = picture.getBoundingClientRect();
  picture.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + 60, clientY: box.top + 50}));
  return document.querySelector(".tip").textContent;
};
document.documentElement.dataset.anywhere = hover();
document.querySelector('#mask [data-value="taught"]').click();
document.documentElement.dataset.taught = hover();
document.documentElement.dataset.address = location.hash;
</script>"""


@needs_browser
def test_the_mask_is_a_switch_and_intervals_are_shown(tmp_path: Path) -> None:
    content = sample.fair()
    for row in content["rows"]:
        if row["mask"]:  # as if the mask helped: one recording finds everything after the first phase
            row["acc"][0][0] = 1.0
            for cell, first in enumerate(row["recordings"]["phase"]):
                if first == 0:
                    row["recordings"]["hits"][cell][0] = row["n_sources"] * row["recordings"]["frames"][cell]
    page.render(sample.saved(tmp_path, content), tmp_path / "out")
    report = tmp_path / "out" / "report.html"
    text = report.read_text(encoding="utf-8")
    driven = tmp_path / "driven.html"
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    driven.write_text(text.replace("</body>", f"{HOVER}</body>"), encoding="utf-8")
    shown = html.unescape(dom(driven, "", tmp_path))
    anywhere, taught, address = (
        re.search(rf'data-{name}="([^"]*)"', shown) for name in ("anywhere", "taught", "address")
    )
    assert anywhere is not None
    assert taught is not None
    assert address is not None
    assert re.search(r"Joint\d\d\.\d ± \d+\.\d \(\d+\.\d to \d+\.\d\)", anywhere[1])
    assert "Joint100.0 ± 0.0 (100.0 to 100.0)" in taught[1]
    assert "mask=taught" in address[1].split("&")
    assert drawn(shown, r'<span class="ends">\(') > 20
    assert 'id="mask-field" hidden' not in shown
    linked = dom(report, "#mask=taught&method=tyto", tmp_path)
    assert re.search(r'data-value="taught" aria-pressed="true"', linked)
    assert "after phase 0, 0-35°, on phase 0, 0-35°: 100.0 %" in linked
    page.render(sample.saved(tmp_path, sample.document(1), "old.json"), tmp_path / "old")
    old = dom(tmp_path / "old" / "report.html", "#mask=taught", tmp_path)  # older than the mask
    assert 'id="mask-field" hidden' in old


@needs_browser
def test_hostile_results_stay_text(tmp_path: Path) -> None:
    rows = [sample.row(name, 0) for name in ("ssl-cil", HOSTILE, "__proto__")]
    rows.append(sample.row("constructor", 0, decision="'\"><b>$x^2$漢"))
    rows += [sample.row("ssl-cil", 0, variant=f"{HOSTILE}={n}") for n in (1, 2)]
    rows.append(sample.row("joint", 0, condition=f"{HOSTILE} 0 dB"))
    content = sample.document(1) | {"rows": rows, "name": HOSTILE, "machine": HOSTILE}
    content |= {"command": f"{HOSTILE}\u2028\n`x`", "config": {HOSTILE: [HOSTILE, float("nan")]}}
    content |= {"versions": {HOSTILE: HOSTILE, "__proto__": 1}}
    page.render(sample.saved(tmp_path, content), tmp_path / "out")
    shown = dom(tmp_path / "out" / "report.html", "", tmp_path)
    assert not re.search(r"<html[^>]*broken", shown)
    assert not re.search(r"<img|<b>", shown.split("<body", 1)[1])
    assert len(re.findall(r"</script>", shown)) == 2
    assert "&lt;/script&gt;" in body(shown)
    assert "{{data}}" in body(shown)
    assert drawn(shown, r'class="curve"') == 4
    assert "<script" not in (tmp_path / "out" / "tables.md").read_text(encoding="utf-8")
