"""The house rules of templates: nothing inline, and one name for a partial, its element and the targets that swap it."""

import hashlib
import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
# Words and marks that other templates include; they are never swapped by themselves.
INCLUDED = {
    "logo", "time", "icon", "state", "theme", "messages", "field", "trouble", "said", "digest",
     "plan-card", "check-rows", "verdicts", "under-way", "hold", "told",
}  # fmt: skip

INLINE = re.compile(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=|javascript:|hx-on|hx-vals=.js:|\bjs:", re.IGNORECASE)
PARTIAL = re.compile(r"{% partialdef ([\w-]+)")
TARGET = re.compile(r'hx-target="#([\w-]+?)(?:-{{[^"]*)?"')
TRIGGER = re.compile(r'hx-trigger="([^"]*)"')


def body_of(text: str, name: str) -> str:
    return text.split(f"{{% partialdef {name}", 1)[1].split("{% endpartialdef", 1)[0]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT / "templates")))
def test_nothing_is_inline(path: Path) -> None:
    assert not INLINE.findall(path.read_text())


def test_no_trigger_has_a_filter() -> None:
    for path in TEMPLATES:
        assert not [trigger for trigger in TRIGGER.findall(path.read_text()) if "[" in trigger], path


def test_a_partial_that_is_swapped_is_named_like_its_element() -> None:
    named = set()
    for path in TEMPLATES:
        text = path.read_text()
        for name in set(PARTIAL.findall(text)) - INCLUDED:
            ids = re.findall(r'\sid="([^"]+)"', body_of(text, name))
            assert ids, (path, name)
            assert re.sub(r"-{{.*", "", ids[0]) == name, (path, name, ids[0])
            named.add(name)
    for path in TEMPLATES:
        assert set(TARGET.findall(path.read_text())) <= named, path


def test_every_htmx_request_names_its_own_target_and_swap() -> None:
    for path in TEMPLATES:
        for tag in re.findall(r"<\w+[^<>]*?hx-(?:get|post)=[^<>]*>", path.read_text()):
            assert "hx-swap=" in tag, (path, tag)
            assert "hx-target=" in tag or 'hx-swap="none"' in tag, (path, tag)


def test_the_assets_are_those_of_their_makers() -> None:
    expected = {
        "bootstrap/css/bootstrap.min.css": "d85327d99c7a3ee1f9b5d0500d1370acea3ad2db39c163c2f51f232baedbdede",
        "django_htmx/htmx-2.min.js": "71ea67185bfa8c98c39d31717c6fce5d852370fcdfd129db4543774d3145c0de",
    }
    for name, digest in expected.items():
        found = finders.find(name)
        assert found
        assert hashlib.sha256(Path(found).read_bytes()).hexdigest() == digest, name


def test_nothing_comes_from_elsewhere() -> None:
    for path in [*TEMPLATES, *sorted((ROOT / "static").rglob("*.*"))]:
        assert not re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?:https?:)?//", path.read_text()), path
