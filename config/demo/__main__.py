"""`python -m config.demo`: the story, headless and real.

An agent proposes a hundred letters, Alice approves them in her browser, and after the fortieth delivery every worker process is
killed. They start again. The mailbox counts what arrived, by recipient; the ledger says what it knows; both are printed.
"""

import argparse
import json
import os
import shutil
import socket
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from config.demo import world
from config.demo.letters import customers, letters
from config.demo.visitors import Agent, Person, field
from config.embedded import Refusal
from config.stack import Stack

KILL_AFTER = 40  # deliveries
PATIENCE = 90.0  # seconds for each part of the story
BEGAN = time.monotonic()


def tell(line: str) -> None:
    """One line of the story, with the seconds since it began."""
    print(f"{time.monotonic() - BEGAN:6.1f} s  {line}", flush=True)


def main() -> int:
    """Tell the story; 0 only if nobody got two letters and everybody approved is accounted for."""
    parser = argparse.ArgumentParser(prog="make demo", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the scratch data folder")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="signoff-demo-"))
    folder.chmod(0o755)  # the database's own account must be able to enter
    try:
        with Stack(folder, port=_free_port(), environment=_own_environment(), say=tell) as stack:
            return _story(stack)
    except Refusal as refusal:
        tell(str(refusal))
        return 1
    finally:
        if options.keep:
            print(f"The data is in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _story(stack: Stack) -> int:
    stack.services()
    stack.migrate()
    mailbox = stack.mailbox(delay=0.2)
    stack.run("-m", "config.demo.world", "--rate", "40", name="world")
    for name in ("web", "worker", "beat"):
        stack.start(name)
    address = stack.wait_for_web()
    people = world.read(stack.home.path)
    tell("PostgreSQL, Redis, web, worker, beat and a mailbox are up, on scratch data")

    agent = Agent(address, people.token)
    plan = agent.propose(letters(), title="The new editions", event_id="new-editions-2026")
    tell("the agent proposed a plan of 100 letters")
    page = f"/{people.workspace}/plans/{plan}/"
    alice = Person(address, "alice@nordlicht.example", people.passwords["alice@nordlicht.example"])
    alice.submit(page + "approval/", {"digest": field(alice.visit(page), "digest")}, page=page)
    tell("Alice read the plan and approved it in her browser")

    _wait("40 deliveries", lambda: _count(mailbox)["messages"] >= KILL_AFTER)
    stack.kill("worker")
    tell(f"every worker process was killed (SIGKILL) after {_count(mailbox)['messages']} deliveries")
    stack.start("worker")
    tell("the worker was started again")
    _wait("all rows to settle or to reach a person", lambda: not _under_way(agent, plan))
    _resolve_unknowns(address, people, agent, plan, mailbox)
    return _tally(agent, plan, _count(mailbox)["by_recipient"])


def _resolve_unknowns(address: str, people: world.World, agent: Agent, plan: int, mailbox: str) -> None:
    """What nobody can know is for a person: Dana looks into the mailbox herself, and answers for what she rules."""
    unknown = [row for row in _rows(agent, plan) if row["state"] == "unknown"]
    if not unknown:
        tell("no row was left unknown: look-ups proved what had arrived before the crash")
        return
    tell(f"{len(unknown)} rows are unknown: reserved before the crash, and look-ups did not find them")
    dana = Person(address, "dana@nordlicht.example", people.passwords["dana@nordlicht.example"])
    arrived = _count(mailbox)["by_recipient"]
    for row in unknown:
        page = f"/{people.workspace}/effects/{row['effect_id']}/"
        words = {"to": "failed", "again": "on", "reason": "The worker was killed before it wrote the letter.", "state": "unknown"}
        if arrived.get(row["target"]):
            words |= {"to": "done", "again": "", "reason": "The letter is in the mailbox."}
        dana.submit(page + "resolution/", words | {"evidence": "looked into the mailbox"}, page=page)
    tell("Dana looked into the mailbox and resolved each, with her reason; what was not there is sent once more")
    _wait("the last letters", lambda: not _under_way(agent, plan))


def _tally(agent: Agent, plan: int, arrived: dict[str, int]) -> int:
    """Print both counts side by side; 0 when nobody got two and everybody is accounted for."""
    approved = [customer.email for customer in customers()]
    ledger = agent.get(f"plans/{plan}")["counts"]
    once = sum(arrived.get(who, 0) == 1 for who in approved)
    twice = sum(arrived.get(who, 0) > 1 for who in approved)
    never = sum(arrived.get(who, 0) == 0 for who in approved)
    strangers = len(set(arrived) - set(approved))
    print(f"\n{'':14}{'approved':>10}{'exactly once':>14}{'twice':>7}{'never':>7}{'unknown':>9}")
    print(f"{'mailbox':14}{len(approved):>10}{once:>14}{twice:>7}{never:>7}{'-':>9}")
    undone = ledger["rows"] - ledger["done"] - ledger["unknown"]
    print(f"{'ledger':14}{ledger['rows']:>10}{ledger['done']:>14}{'-':>7}{undone:>7}{ledger['unknown']:>9}\n")
    whole = twice == 0 and strangers == 0 and once == len(approved) == ledger["done"]
    tell("every approved person got exactly one letter" if whole else "NOT everybody got exactly one letter")
    return 0 if whole else 1


def _under_way(agent: Agent, plan: int) -> bool:
    counts = agent.get(f"plans/{plan}")["counts"]
    return bool(counts["waiting"] or counts["pending"] or counts["failed"])


def _rows(agent: Agent, plan: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = agent.get(f"plans/{plan}/rows" + (f"?cursor={cursor}" if cursor else ""))
        rows += page["rows"]
        if not (cursor := page["next"]):
            return rows


def _wait(what: str, until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not until():
        if time.monotonic() > deadline:
            raise Refusal(f"waited {PATIENCE:.0f} s for {what}, in vain")
        time.sleep(0.02 if what.endswith("deliveries") else 0.25)


def _count(mailbox: str) -> dict[str, Any]:
    with urllib.request.urlopen(mailbox + "count", timeout=10) as answer:
        counted: dict[str, Any] = json.load(answer)
    return counted


def _own_environment() -> dict[str, str]:
    """This environment, without the servers it may name: the story runs on scratch data and nothing else."""
    return {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL", "SIGNOFF_DATA_DIR")}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
