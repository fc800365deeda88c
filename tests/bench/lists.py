"""`make bench ARGS=--lists`: the first page of every list, and of every filter, on a ledger of a million rows.

Exit code 1 when the median of one passed 100 ms, the whole request over loopback included.
"""

import argparse
import os
import statistics
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg

from config.embedded import Refusal
from config.stack import Stack
from effects.statements import read_statements
from tests.bench.giant import on_scratch_data, tell
from tests.bench.watching import Reader

if TYPE_CHECKING:  # needs Django set up
    from tests.bench.product import Product

BOUND = 0.1  # seconds
LOOKS = 7  # after one that warms up
MAKING = read_statements(Path(__file__).parent / "sql" / "ledger.sql")


def make_ledger(product: "Product", effects: int, superuser: str) -> int:
    """A ledger of so many effects around the bench's own workspace; gives the number of its first plan."""
    from accounts.models import Workspace
    from approvals.models import Plan
    from audit.chain import Actor
    from effects import channels

    other = Workspace.objects.create(slug="other", name="Other")
    theirs = channels.add(
        other,
        slug="http",
        provider="http",
        settings={"url": "http://127.0.0.1:9/"},
        secrets={},
        by=Actor("command", None, "bench"),
    )
    values: dict[str, Any] = {
        "workspace": product.workspace.pk, "channel": product.channel.pk, "other": other.pk, "others_channel": theirs.pk,
        "token": product.token.pk, "author": product.token.owner_id, "effects": effects, "plans": 20_000, "runs": 50_000,
        "entries": effects // 5,
    }  # fmt: skip
    with psycopg.connect(superuser, autocommit=True) as made:
        for name, statement in MAKING.items():
            made.execute(statement, values if "%" in statement else None)
            if name == "plans":
                values["first_plan"] = Plan.objects.order_by("id").values_list("pk", flat=True)[0]
            tell(f"made: {name}")
        made.execute("VACUUM ANALYZE")
    return int(values["first_plan"])


def addresses(plan: int, key: str) -> dict[str, str]:
    """Every list with each of its filters."""
    effects = {
        "all": "", **{state: f"state={state}" for state in ("done", "failed", "unknown", "stranded", "revoked", "pending")},
        "target": "target=customer123456", "no such target": "target=nobody", "channel": "channel=http", "key": f"key={key}",
        "plan": f"plan={plan}", "plan, failed": f"plan={plan}&state=failed", "plan, revoked": f"plan={plan}&state=revoked",
        "plan, target": f"plan={plan}&target=nobody", "run": "run=55", "run, failed": "run=55&state=failed",
        "failed by http": "state=failed&channel=http", "far page": "after=300000",
    }  # fmt: skip
    lists = {
        "inbox": "inbox/", "badges": "inbox/count/", "plans": "plans/", "plans, proposed": "plans/?state=proposed",
        "plans, changes requested": "plans/?state=changes_requested", "plans, draft": "plans/?state=draft", "runs": "runs/",
        "runs, failed": "runs/?state=failed", "runs by agent": "runs/?agent=agent+7", "runs, no agent": "runs/?agent=nobody",
        "run": "runs/55/", "desk": "unknown/", "epochs": "epochs/", "epochs, person": "epochs/?person=bob",
        "epochs, nobody": "epochs/?person=nobody", "epochs, key": f"epochs/?key={key}", "record": "audit/",
        "record, act": "audit/?act=stopped", "record, no act": "audit/?act=nothing", "record, person": "audit/?person=bob",
        "record, nobody": "audit/?person=nobody", "record, kind": "audit/?kind=plan",
        "record, number": "audit/?kind=effect&number=4711", "channels": "channels/", "people": "people/",
    }  # fmt: skip
    rows = {
        "plan": "", "live poll": "progress/?v=old", "rows by text": "?text=customer99", "rows, no text": "?text=nobody",
        **{f"rows, {figure}": f"?state={figure}" for figure in ("done", "failed", "unknown", "waiting", "covered", "excluded")},
    }  # fmt: skip
    return {
        **lists,
        **{f"effects, {name}": f"effects/?{query}" for name, query in effects.items()},
        **{name: f"plans/{plan}/{query}" for name, query in rows.items()},
    }


def measure(stack: Stack, effects: int) -> dict[str, Any]:
    """Milliseconds by list: median and slowest."""
    os.environ |= stack.environment | {"DJANGO_SETTINGS_MODULE": "config.settings"}
    import django

    django.setup()
    from effects.models import Effect
    from tests.bench.product import Product

    product = Product("http://127.0.0.1:9/", window=16)
    url = urlsplit(stack.embedded.database_url)
    password = stack.home.secret("postgres-superuser-password")
    superuser = url._replace(netloc=f"postgres:{password}@{url.hostname}:{url.port}").geturl()
    plan = make_ledger(product, effects, superuser)
    stack.start("web")
    stack.wait_for_web()
    reader = Reader(f"http://127.0.0.1:{stack.port}", "ed@bench.example", product.password)
    key = Effect.objects.filter(workspace=product.workspace, state="done").values_list("key", flat=True)[0]
    base = f"/{product.workspace.slug}/"
    for name, path in addresses(plan, key).items():
        reader.visit(base + path)
        for _ in range(LOOKS):
            reader.look(name, base + path)
    figures = {
        name: {"median_ms": round(1000 * statistics.median(times), 1), "slowest_ms": round(1000 * max(times), 1)}
        for name, times in reader.seconds.items()
    }
    return {"effects": effects, "lists": figures}


def main(arguments: list[str] | None = None) -> int:
    """Measure, print, write; 0 when every list kept its bound."""
    parser = argparse.ArgumentParser(prog="make bench ARGS=--lists", description=__doc__)
    parser.add_argument("--effects", type=int, default=1_000_000)
    parser.add_argument("--keep", action="store_true", help="keep the scratch data")
    options = parser.parse_args(arguments)
    try:
        report = on_scratch_data(lambda stack: measure(stack, options.effects), "lists", keep=options.keep)
    except Refusal as refusal:
        tell(str(refusal))
        return 1
    print(f"{'first page of':>26}  median   slowest   of {report['effects']:,} effects")
    slow = [name for name, figure in report["lists"].items() if figure["median_ms"] > 1000 * BOUND]
    for name, figure in report["lists"].items():
        print(f"{name:>26}  {figure['median_ms']:>6} ms  {figure['slowest_ms']:>6} ms{'  TOO SLOW' if name in slow else ''}")
    return int(bool(slow))


if __name__ == "__main__":
    sys.exit(main())
