"""The mailbox's pages: a list, one message, a look-up by Message-ID and the counts, all read-only."""

from collections.abc import Awaitable, Callable
from email.message import EmailMessage
from html import escape

from aiohttp import web

from config.mailbox.journal import Entry, Journal, as_dict

PER_PAGE = 50
COLUMNS = ("To", "Subject", "Received (UTC)")
JOURNAL = web.AppKey("journal", Journal)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
STYLE = """\
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .4rem .8rem .4rem 0; vertical-align: top;
   border-bottom: 1px solid #8886; }
td, pre { overflow-wrap: anywhere; }
pre { white-space: pre-wrap; padding: 1rem; border: 1px solid #8886; border-radius: .4rem; }
.counts { display: flex; flex-wrap: wrap; gap: 2rem; padding: 0; list-style: none; }
.counts b { display: block; font-size: 1.6rem; line-height: 1.2; }
.twice b { color: #c22; }
"""


@web.middleware
async def guard(request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> web.StreamResponse:
    """Answer to names of this machine only, or a site could point its own name here and read the mail."""
    if request.url.host not in ("localhost", "127.0.0.1"):
        raise web.HTTPForbidden(text="This mailbox answers to localhost only.")
    return await handler(request)


async def headers(request: web.Request, response: web.StreamResponse) -> None:
    """Every answer forbids scripts and everything foreign."""
    response.headers.update(HEADERS)


def application(journal: Journal) -> web.Application:
    """The pages over one journal."""
    app = web.Application(middlewares=[guard])
    app[JOURNAL] = journal
    app.on_response_prepare.append(headers)
    app.add_routes(
        [
            web.get("/", listing),
            web.get("/mailbox.css", style),
            web.get("/messages/{id}", message),
            web.get("/lookup", lookup),
            web.get("/count", count),
        ]
    )
    return app


async def listing(request: web.Request) -> web.Response:
    """The newest first, fifty a page."""
    journal = request.app[JOURNAL]
    try:
        page = max(1, int(request.query.get("page", "1")))
    except ValueError:
        raise web.HTTPBadRequest(text="page is a number") from None
    counts = journal.counts()
    pages = max(1, -(-len(journal.entries) // PER_PAGE))
    page = min(page, pages)
    last = len(journal.entries) - (page - 1) * PER_PAGE
    shown = journal.entries[max(0, last - PER_PAGE) : last][::-1]
    twice = len(counts["twice"])
    body = f"""<h1>Mailbox</h1>
<ul class="counts"><li><b>{counts["messages"]}</b>messages</li>
<li><b>{counts["recipients"]}</b>distinct recipients</li>
<li{' class="twice"' if twice else ""}><b>{twice}</b>recipients with more than one</li></ul>
<table><thead><tr>{"".join(f'<th scope="col">{title}</th>' for title in COLUMNS)}</tr></thead>
<tbody>{"".join(map(_row, shown)) or f'<tr><td colspan="{len(COLUMNS)}">No mail yet.</td></tr>'}</tbody></table>
<nav aria-label="Pages">{_link("Newer", page - 1, pages)} Page {page} of {pages}
{_link("Older", page + 1, pages)}</nav>"""
    return _html("Mailbox", body)


async def message(request: web.Request) -> web.Response:
    """One message: its envelope, its headers, its text; HTML is shown as source."""
    entry = request.app[JOURNAL].by_id.get(request.match_info["id"])
    if entry is None:
        raise web.HTTPNotFound(text="No such message.")
    mail = request.app[JOURNAL].message(entry)
    known = [("Envelope to", ", ".join(entry.recipients)), ("Envelope from", entry.sender)]
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
        for name, value in [*known, ("Received", entry.received_at), *_shown(mail)]
    )
    subject = entry.subject or "(no subject)"
    body = f"""<p><a href="/">All messages</a></p><h1>{escape(subject)}</h1>
<table><tbody>{rows}</tbody></table><h2>Text</h2><pre>{escape(_text(mail))}</pre>"""
    return _html(subject, body)


async def lookup(request: web.Request) -> web.Response:
    """Whether a message with this Message-ID was taken: proof for whoever lost the answer."""
    entry = request.app[JOURNAL].by_message_id.get(request.query.get("message_id", "").strip())
    if entry is None or not entry.message_id:
        return web.json_response({"error": "no message with this message_id"}, status=404)
    return web.json_response(as_dict(entry))


async def count(request: web.Request) -> web.Response:
    """How many messages, and how many for each envelope recipient."""
    return web.json_response(request.app[JOURNAL].counts())


async def style(request: web.Request) -> web.Response:
    """The style sheet, at an address of its own because inline style is forbidden."""
    return web.Response(text=STYLE, content_type="text/css")


def _html(title: str, body: str) -> web.Response:
    text = f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/mailbox.css"></head>
<body><main>{body}</main></body></html>"""
    return web.Response(text=text, content_type="text/html")


def _row(entry: Entry) -> str:
    subject = escape(entry.subject or "(no subject)")
    return (
        f"<tr><td>{escape(', '.join(entry.recipients))}</td>"
        f'<td><a href="/messages/{entry.id}">{subject}</a></td><td>{escape(entry.received_at[:19])}</td></tr>'
    )


def _link(title: str, page: int, pages: int) -> str:
    return f'<a href="/?page={page}">{title}</a>' if 1 <= page <= pages else ""


def _shown(mail: EmailMessage) -> list[tuple[str, str]]:
    return [(name, str(value).encode(errors="replace").decode()) for name, value in mail.raw_items()]


def _text(mail: EmailMessage) -> str:
    part = mail.get_body(("plain", "html"))
    if part is None:
        return "(no text)"
    try:
        text = str(part.get_content())
    except (LookupError, ValueError):  # a charset nobody knows
        text = str(part.get_payload())
    return text.encode(errors="replace").decode()
