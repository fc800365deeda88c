"""What a letter holds, told to its reviewer: links with their real hosts, remote pictures, characters that do not draw.

Pure. Nothing here changes what is sent; it only shows it.
"""

import re
import unicodedata
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from html.parser import HTMLParser
from urllib.parse import urlsplit

import idna
import nh3

SAFE_SCHEMES = frozenset({"https", "mailto", "tel"})
# A visible text that a reader takes for an address: a host with a dot and letters at its end, whatever stands around it.
LOOKS_LIKE_A_HOST = re.compile(r"(?:https?://)?((?:[^\s/@:<>()]+\.)+[^\W\d_]{2,})(?=[/:?#\s.,;!]|$)", re.IGNORECASE)
LINK_IN_TEXT = re.compile(r"https?://[^\s<>\"')\]]+", re.IGNORECASE)
WORDS = re.compile(r"\s+|\w+|[^\w\s]")
LINES = re.compile(r"[^\n]*\n|[^\n]+")
QUICK = 20_000  # characters compared word by word
STYLE_BLOCK = re.compile(r"<style\b.*?</style", re.IGNORECASE | re.DOTALL)
FETCHED_BY_STYLE = re.compile(r"url\(\s*['\"]?([^'\")\s]+)['\"]?\s*\)?|@import\s+['\"]([^'\"]+)", re.IGNORECASE)

TAGS = {*nh3.ALLOWED_TAGS, "font", "style"} - {"area", "map"}
ATTRIBUTES = {
    "*": {"style", "class", "dir", "lang", "align", "valign", "width", "height", "bgcolor", "color", "title"},
    "img": {"src", "alt", "border"},
    "table": {"cellpadding", "cellspacing", "border", "role"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "font": {"face", "size"},
    "ol": {"start", "type"},
}


@dataclass(frozen=True)
class Piece:
    """Some text, or one character that does not draw: then `mark` is its code point and `name` says what it is."""

    text: str
    mark: str = ""
    name: str = ""


@dataclass(frozen=True)
class Link:
    """One link: what the reader sees, where it goes, and why to look twice."""

    text: str
    href: str
    host: str  # in its xn-- form; empty where the link names none
    spelled: str  # the host as it draws, where that differs
    warnings: tuple[str, ...]


@dataclass
class Sight:
    """What a letter links to and what it would fetch."""

    links: list[Link] = field(default_factory=list)
    pictures: list[str] = field(default_factory=list)  # remote ones, never fetched here


def is_hidden(character: str) -> bool:
    """True for characters that draw nothing, or that change the order of others: by Unicode property, not by a list."""
    if " " <= character <= "~" or character in "\n\r\t":
        return False
    if unicodedata.category(character) in {"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"}:
        return True
    # Letters and marks that Unicode names as fillers, blanks, joiners or selectors draw nothing either.
    name = unicodedata.name(character, "")
    return name.endswith(("FILLER", "PATTERN BLANK", "GRAPHEME JOINER")) or "VARIATION SELECTOR" in name


def pieces(text: str) -> list[Piece]:
    """The text, cut at every hidden character."""
    found: list[Piece] = []
    start = 0
    for at, character in enumerate(text):
        if is_hidden(character):
            if start < at:
                found.append(Piece(text[start:at]))
            found.append(Piece("", f"U+{ord(character):04X}", unicodedata.name(character, "control character").lower()))
            start = at + 1
    if start < len(text):
        found.append(Piece(text[start:]))
    return found


@dataclass(frozen=True)
class Stroke:
    """Some words that stayed, came ("ins") or went ("del")."""

    kind: str
    text: str


def compare(before: str, after: str) -> list[Stroke]:
    """What became of `before`, word by word; line by line where there are too many words to be quick."""
    cut = WORDS if len(before) + len(after) < QUICK else LINES
    old, new = cut.findall(before), cut.findall(after)
    strokes = []
    for name, lo, hi, start, stop in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if name == "equal":
            strokes.append(Stroke("", "".join(old[lo:hi])))
            continue
        if lo < hi:
            strokes.append(Stroke("del", "".join(old[lo:hi])))
        if start < stop:
            strokes.append(Stroke("ins", "".join(new[start:stop])))
    return strokes


def for_preview(html: str) -> str:
    """The HTML as the sandboxed frame shows it: no scripts, forms, frames, and no picture or link that leads out."""
    return nh3.clean(
        STYLE_BLOCK.sub(lambda block: FETCHED_BY_STYLE.sub("none", block[0]), html),
        tags=TAGS,
        attributes=ATTRIBUTES,
        clean_content_tags={"script", "title"},
        attribute_filter=_inert,
        url_schemes={"data"},
        link_rel=None,
    )


def _inert(tag: str, name: str, value: str) -> str | None:
    if name == "src":
        return value if value.lower().startswith("data:image/") else None
    return FETCHED_BY_STYLE.sub("none", value) if name == "style" else value


def look(html: str, text: str = "") -> Sight:
    """The links and remote pictures of a letter, in the order in which they stand."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    reader.sight.links += [link_of(href, href) for href in LINK_IN_TEXT.findall(text)]
    return reader.sight


def link_of(href: str, text: str) -> Link:
    """One link, with its host in the form that machines read, compared with what the reader sees."""
    text, href = " ".join(text.split()), href.strip()
    try:
        parts = urlsplit(href)
        scheme, spelled = parts.scheme.lower(), parts.hostname or ""
    except ValueError:
        return Link(text, href, "", "", ("it cannot be read as a link",))
    host, drawn = _ascii(spelled), _drawn(spelled)
    warnings = []
    if scheme not in SAFE_SCHEMES:
        warnings.append(f"{scheme or 'no scheme'}: only https, mailto and tel are expected")
    if parts.username or parts.password:
        warnings.append("a name before the host hides where it goes")
    if "xn--" in host:
        warnings.append("the host has letters that may look like others")
    seen = LOOKS_LIKE_A_HOST.search(text)
    if seen and host and _ascii(seen[1]).removeprefix("www.") != host.removeprefix("www."):
        warnings.append(f"the text shows {seen[1]}, the link goes to {host}")
    return Link(text, href, host, drawn if drawn != host else "", tuple(warnings))


def _ascii(host: str) -> str:
    try:
        return idna.encode(host.rstrip("."), uts46=True).decode().lower() if host else ""
    except idna.IDNAError:
        return host.lower()


def _drawn(host: str) -> str:
    try:
        return idna.decode(host.rstrip("."), uts46=True) if host else ""
    except idna.IDNAError:
        return host


class _Reader(HTMLParser):
    """Collects links with their visible text, and whatever would be fetched."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.sight = Sight()
        self._href: str | None = None
        self._text: list[str] = []
        self._in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self._in_style = tag == "style"
        if tag in {"a", "area"} and "href" in values:
            self._end_link()
            self._href, self._text = values["href"], [values.get("alt", "")]
        for name in ("src", "background", "srcset", "poster"):
            self._fetched(values.get(name, ""))
        if tag == "link":
            self._fetched(values.get("href", ""))
        self._styled(values.get("style", ""))

    def handle_data(self, data: str) -> None:
        if self._in_style:
            self._styled(data)
        elif self._href is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        self._in_style = False
        if tag == "a":
            self._end_link()

    def close(self) -> None:
        super().close()
        self._end_link()

    def _end_link(self) -> None:
        if self._href is not None:
            self.sight.links.append(link_of(self._href, "".join(self._text)))
        self._href = None

    def _fetched(self, address: str) -> None:
        if address and not address.lower().startswith(("data:", "cid:")):
            self.sight.pictures.append(address)

    def _styled(self, style: str) -> None:
        for one, other in FETCHED_BY_STYLE.findall(style):
            self._fetched(one or other)
