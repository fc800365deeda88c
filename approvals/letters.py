"""What can be wrong with one finished letter or one target, seen by itself. Pure; `approvals.checks` runs it over a plan."""

import re
import unicodedata
from collections.abc import Iterator
from html import unescape
from urllib.parse import urlsplit

import idna

FEW_CHARACTERS = 10  # visible ones, below which a letter is as good as empty
LARGE_PART = 100_000  # bytes of HTML or text: mail programs cut letters at about 102 kB

# Bracketed capitals that people do write: a tag in front of a subject, not a hole in a template.
TAGS = "URGENT|IMPORTANT|EXTERNAL|INTERNAL|ACTION REQUIRED|REMINDER|UPDATE|INFO|FYI|NEW|OK|SIC|RFC|PDF"
# A sign that is quick to look for, and what makes it a placeholder.
PLACEHOLDERS = [
    ("{{", re.compile(r"\{\{")),
    ("}}", re.compile(r"\}\}")),
    ("{%", re.compile(r"\{%")),
    ("[", re.compile(rf"\[(?!(?:{TAGS})\])[A-Z][A-Z_ ]{{0,60}}[A-Z]\]")),  # [NAME], [FIRST NAME]
    ("<<", re.compile(r"<< ?\w[\w .-]{0,60}>>")),  # <<name>>
    ("&lt;&lt;", re.compile(r"&lt;&lt; ?\w[\w .-]{0,60}&gt;&gt;")),
    ("%", re.compile(r"%[A-Z][A-Z_]{2,60}[0-9]{0,4}%")),  # %FIRST_NAME%, and not %C3% of an address
]
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
MARKUP = re.compile(r"<[^<>]*>")
ENOUGH = re.compile(rf"(?:\s*\S){{{FEW_CHARACTERS}}}")
HEADER_BREAK = re.compile(r"[\r\n\0]")

LINK_ENDS = re.compile(r"</[aA]\s*+>")
LINK_BEGINS = re.compile(r"<[aA](?=[\s>/])")
TAG = re.compile(r"""(?:[^>"']++|"[^"]*+"|'[^']*+')*+>""")
HREF = re.compile(r"""\bhref\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+))""", re.IGNORECASE)
HOST = re.compile(r"(?<![\w-])((?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24})(?![\w-])")
FILE_ENDINGS = frozenset({"pdf", "html", "htm", "docx", "doc", "xlsx", "csv", "txt", "zip", "png", "jpg", "jpeg", "gif"})

# Latin letter: letters of other scripts that look like it. NFKC has folded full-width and styled letters before.
LOOK_ALIKES = {
    "a": "аαɑ", "b": "ьƅ", "c": "сϲ", "d": "ԁ", "e": "еҽ", "g": "ɡց", "h": "һհ", "i": "іιı", "j": "јϳ", "k": "кκ", "l": "ӏⅼ",
    "m": "м", "n": "ոп", "o": "оοօ", "p": "рρ", "q": "ԛզ", "r": "гᴦ", "s": "ѕꜱ", "t": "тτ", "u": "ս", "v": "νѵ", "w": "ԝω",
    "x": "хχ", "y": "уγү", "z": "ᴢ",
}  # fmt: skip
FOLD = str.maketrans({other: latin for latin, others in LOOK_ALIKES.items() for other in others})


def faults_of(subject: str, text: str, html: str, payload: object = None) -> Iterator[str]:
    """The codes of all that is wrong with one letter, whatever its channel; each at most once."""
    strings = [subject, text, html, *_strings(payload)]
    if any(_has_placeholder(string) for string in strings):
        yield "unresolved_placeholder"
    if HEADER_BREAK.search(subject):
        yield "line_break_in_subject"
    if any(has_invisible(string) for string in strings):
        yield "invisible_characters"
    if html and misleading_links(html):
        yield "link_text_names_another_host"
    if payload is None and is_empty(text, html):
        yield "empty_letter"
    elif payload is None and not ENOUGH.match(text) and not ENOUGH.match(visible(html)):
        yield "near_empty_letter"
    if len(text) > LARGE_PART or len(html) > LARGE_PART:
        yield "oversize"


def is_empty(text: str, html: str) -> bool:
    """True when there is nothing to read and nothing to see."""
    return not text.strip() and not html.strip()


def visible(html: str) -> str:
    """The text of an HTML part: no markup, no style sheets, entities resolved."""
    return unescape(MARKUP.sub(" ", without_styles(html))) if html else ""


def without_styles(html: str) -> str:
    """HTML without its style sheets and comments, in one pass however it is written."""
    for begin, end in (("<style", "</style"), ("<!--", "-->")):
        lower = html.lower()
        if len(lower) != len(html) or begin not in lower:
            continue  # a letter whose small form is longer moves everything behind it: leave such a rarity as it is
        kept, at = [], 0
        while (start := lower.find(begin, at)) >= 0:
            kept.append(html[at:start])
            stop = lower.find(end, start)
            at = stop + len(end) if stop >= 0 else len(html)
        html = "".join([*kept, html[at:]])
    return html


def has_invisible(text: str) -> bool:
    """True when `text` holds characters that do not draw or that reorder: category Cf, and controls but line breaks and tabs."""
    if text.isascii():
        return bool(CONTROL.search(text))
    return any(unicodedata.category(character) in {"Cf", "Cc"} for character in set(text) - {"\n", "\r", "\t"})


def misleading_links(html: str) -> list[tuple[str, str]]:
    """Links whose visible text names one host and whose address another, as (host in the text, host of the link)."""
    found = []
    for before_end in LINK_ENDS.split(html)[:-1]:
        begins = [match.end() for match in LINK_BEGINS.finditer(before_end)]
        tag = TAG.match(before_end, begins[-1]) if begins else None
        address = HREF.search(tag[0]) if tag else None
        if tag and address and (real := _host_of(unescape(next(filter(None, address.groups()), "")))):
            shown = [_plain_host(name) for name in HOST.findall(visible(before_end[tag.end() :]))]
            found += [(name, real) for name in shown if _is_host(name) and not _belongs(real, name)]
    return found


def skeleton(target: str) -> str:
    """What a target looks like: two different targets with one skeleton are easily taken for each other."""
    local, at, domain = target.rpartition("@")
    return f"{_folded(local)}{at}{_folded(_unicode_domain(domain) if at else domain)}"


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold().translate(FOLD)


def _unicode_domain(domain: str) -> str:
    if "xn--" not in domain:
        return domain
    try:
        return idna.decode(domain)
    except idna.IDNAError:
        return domain


def _has_placeholder(text: str) -> bool:
    for sign, placeholder in PLACEHOLDERS:
        # Style sheets of letters are full of double braces: `@media print{.x{color:red}}`.
        if sign in text and placeholder.search(text) and ("<" not in text or placeholder.search(without_styles(text))):
            return True
    return False


def _strings(value: object) -> Iterator[str]:
    """Every text inside a JSON value, names of fields included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _strings(item)


def _host_of(address: str) -> str:
    """The host a link leads to; of a mail link, the domain of its first address. Empty where there is none."""
    try:
        parts = urlsplit(address.strip())
        host = parts.path.split("?")[0].rpartition("@")[2] if parts.scheme.lower() == "mailto" else parts.hostname or ""
    except ValueError:
        return "an address that cannot be read"
    return _plain_host(host)


def _plain_host(host: str) -> str:
    return _unicode_domain(host.lower().rstrip(".")).removeprefix("www.")


def _is_host(name: str) -> bool:
    return name.rpartition(".")[2] not in FILE_ENDINGS


def _belongs(real: str, shown: str) -> bool:
    """True when the link leads to the shown host or to a part of it (`shop.example.com` for "example.com")."""
    return real == shown or real.endswith(f".{shown}")
