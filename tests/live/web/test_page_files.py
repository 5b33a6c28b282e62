"""The files of the page: whole, of one piece, nothing from elsewhere, readable in both themes."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from importlib.resources import files
from itertools import product

import pytest

WEB = files("tytoalba") / "resources" / "web"
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in WEB.iterdir()}
SCRIPTS = {name: text for name, text in TEXTS.items() if name.endswith(".js")}
VOID = {"meta", "link", "img", "input", "br", "hr"}
LARGEST = 100_000
"""Bytes: all of the page, as it travels."""


class Page(HTMLParser):
    """Elements of the page, and whether each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"{tag} has an attribute twice"
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if data.strip():
            self.texts.append((self.open[-1], data))

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def page() -> Page:
    parser = Page()
    parser.feed(TEXTS["index.html"])
    parser.close()
    assert not parser.open, f"never closed: {parser.open}"
    return parser


def ids(page: Page) -> list[str]:
    return [str(attributes["id"]) for _, attributes in page.elements if "id" in attributes]


# ---- safe ----


def test_nothing_comes_from_elsewhere() -> None:
    for name, text in TEXTS.items():
        found = set(re.findall(r"(?:https?|wss?|data):[^\s\"'`]*", text))
        assert found <= {"http://www.w3.org/2000/svg", "https:", "ws:", "wss:"}, name
        assert not re.search(r"@import|url\(|//cdn|eval\(|new Function", text), name


def test_no_script_style_or_handler_is_inline(page: Page) -> None:
    assert [attributes.get("src") for attributes in page.of("script")] == ["/live.js"]
    assert not page.of("style")
    assert not [text for tag, text in page.texts if tag in ("script", "style")]
    for tag, attributes in page.elements:
        assert not [name for name in attributes if name == "style" or name.startswith("on")], tag


def test_data_never_become_markup() -> None:
    for name, text in SCRIPTS.items():
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment", text
        ), name
        assert 'setAttribute("style"' not in text, name


def test_no_file_is_large() -> None:
    assert sum(len(text.encode()) for text in TEXTS.values()) < LARGEST
    for name, text in SCRIPTS.items():
        assert len(text.splitlines()) < 300, name


def test_names_are_plain() -> None:
    """The server gives out names of this form, and no others."""
    assert all(re.fullmatch(r"[a-z]+\.(html|js|css|svg)", name) for name in TEXTS)


# ---- of one piece ----


def test_ids_are_there_once_and_used_ones_exist(page: Page) -> None:
    there = ids(page)
    assert sorted(there) == sorted(set(there))
    used = {
        word
        for _, attributes in page.elements
        for name in ("for", "aria-labelledby", "aria-describedby", "aria-controls")
        for word in (attributes.get(name) or "").split()
    }
    assert used <= set(there)
    for name, text in SCRIPTS.items():
        for wanted in re.findall(r'byId\("([^"]+)"\)', text):
            assert wanted in there, f"{name}: {wanted}"
        for ending in re.findall(r"byId\(`\$\{(?:this\.)?name\}-([a-z]+)`\)", text):
            assert {f"{form}-{ending}" for form in ("teach", "take")} <= set(there), name


def test_modules_import_what_others_export() -> None:
    for name, text in SCRIPTS.items():
        for words, source in re.findall(r'import \{([^}]+)\} from "\./([a-z.]+)"', text):
            for word in (part.strip() for part in words.split(",")):
                assert re.search(rf"export (?:async )?(?:const|function|class) {word}\b", TEXTS[source]), (
                    f"{name}: {word}"
                )
                assert len(re.findall(rf"\b{word}\b", text)) > 1, f"{name} does not use {word}"


def test_classes_have_a_style(page: Page) -> None:
    used = {word for _, attributes in page.elements for word in (attributes.get("class") or "").split()}
    styled = set(re.findall(r"\.([a-z][\w-]*)", TEXTS["live.css"]))
    assert used <= styled | {"wide"}


# ---- for everybody ----


def test_page_says_what_it_is(page: Page) -> None:
    assert page.of("html") == [{"lang": "en"}]
    assert page.of("title")
    assert {"header", "nav", "main", "footer", "h1"} <= {tag for tag, _ in page.elements}
    viewport = next(a for a in page.of("meta") if a.get("name") == "viewport")
    assert "maximum-scale" not in str(viewport["content"])
    assert "user-scalable" not in str(viewport["content"])
    assert all("alt" in attributes for attributes in page.of("img"))
    assert all("role" in attributes and "aria-label" in attributes for attributes in page.of("canvas"))


def test_styles_answer_wishes() -> None:
    css = TEXTS["live.css"]
    for wish in (
        "prefers-color-scheme: dark",
        "prefers-contrast: more",
        "prefers-reduced-motion",
        "forced-colors",
    ):
        assert wish in css, wish
    moving = css.split("prefers-reduced-motion: no-preference", 1)[0]
    assert "transition" not in moving
    assert "animation" not in css


def themes() -> dict[str, dict[str, str]]:
    """Variables of the style sheet: light, dark, and both with more contrast."""
    blocks = re.findall(r":root \{([^}]*)\}", TEXTS["live.css"])
    light, dark, more, more_dark = (
        dict(re.findall(r"(--[\w-]+): (#[0-9a-f]{6})\b(?![0-9a-f])", block)) for block in blocks
    )
    return {
        "light": light,
        "dark": light | dark,
        "more": light | more,
        "more, dark": light | dark | more | more_dark,
    }


def luminance(colour: str) -> float:
    """Relative luminance as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", ["light", "dark", "more", "more, dark"])
def test_colours_can_be_read(name: str) -> None:
    """4.5 to 1 for words, 3 to 1 for pictures."""
    theme = themes()[name]
    tracks = [f"--track-{n}" for n in range(6)]
    words = [
        *product(("--ink", "--soft", "--accent"), ("--ground", "--card", "--tint")),
        ("--on-accent", "--accent"),
    ]
    words += [
        ("--warn", "--warn-tint"),
        ("--warn", "--card"),
        ("--warn", "--ground"),
        *product(("--on-track",), tracks),
    ]
    for ink, ground in words:
        assert contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground)
    for ink, ground in product(tracks, ("--ground", "--card")):
        assert contrast(theme[ink], theme[ground]) >= 3, (ink, ground)


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


# What people with each kind of colour blindness see: Viénot, Brettel and Mollon (1999), on linear RGB.
BLIND = {
    "protan": ((0.11238, 0.88762, 0.0), (0.11238, 0.88762, 0.0), (0.00401, -0.00401, 1.0)),
    "deutan": ((0.29275, 0.70725, 0.0), (0.29275, 0.70725, 0.0), (-0.02234, 0.02234, 1.0)),
}


@pytest.mark.parametrize(("theme", "eyes"), list(product(("light", "dark"), BLIND)))
def test_the_first_tracks_differ_for_colour_blind_eyes(theme: str, eyes: str) -> None:
    def seen(colour: str) -> tuple[float, ...]:
        linear = [(int(colour[at : at + 2], 16) / 255) ** 2.2 for at in (1, 3, 5)]
        mixed = (sum(w * v for w, v in zip(row, linear, strict=True)) for row in BLIND[eyes])
        return tuple(max(value, 0.0) ** (1 / 2.2) for value in mixed)

    colours = [seen(themes()[theme][f"--track-{n}"]) for n in range(3)]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        apart = sum((x - y) ** 2 for x, y in zip(colours[a], colours[b], strict=True)) ** 0.5
        assert apart > 0.15, (a, b, apart)
