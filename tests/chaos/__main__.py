"""`python -m tests.chaos [--seed N] [--minutes M]`: a run on scratch data; 0 for PASS, 1 for FAIL, 2 for UNKNOWN.

`--defects` plants every known defect instead, and passes when the checker catches each.
"""

import argparse
import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path

from config.embedded import Refusal
from config.stack import Stack
from tests.chaos import script
from tests.chaos.campaign import Campaign, set_up
from tests.chaos.checking import check
from tests.chaos.coverage import missing, tally

SHOWN = 30  # violations
BEGAN = time.monotonic()
VERDICTS = {"PASS": 0, "FAIL": 1, "UNKNOWN": 2}


def tell(line: str) -> None:
    """One line, with the seconds since the beginning."""
    print(f"{time.monotonic() - BEGAN:6.1f} s  {line}", flush=True)


def main() -> int:
    """Run, tell, clean up; the exit code is the verdict."""
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=random.randrange(10_000), help="which plans and which faults (by lot)")
    parser.add_argument("--minutes", type=float, default=2.0, help="how long faults go on (2)")
    parser.add_argument("--defects", action="store_true", help="plant the known defects, and see each caught")
    parser.add_argument("--keep", action="store_true", help="keep the scratch data even after a PASS")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # whoever ends us early leaves no process behind
    folder = Path(tempfile.mkdtemp(prefix="signoff-chaos-"))
    folder.chmod(0o755)  # the database's own account must be able to enter
    clean = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL", "SIGNOFF_DATA_DIR")}
    code = 1
    try:
        with Stack(folder, port=_free_port(), environment=clean, say=tell) as stack:
            set_up(stack)
            code = _defects(stack) if options.defects else _campaign(stack, options)
    except Refusal as refusal:
        tell(f"UNKNOWN: {refusal}")
        code = 2
    finally:
        if options.keep or code:
            tell(f"The journal, the database and the logs are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    return code


def _campaign(stack: Stack, options: argparse.Namespace) -> int:
    tell(f"seed {options.seed}: {options.minutes:g} minutes of plans and faults")
    campaign = Campaign(stack, seed=options.seed, seconds=options.minutes * 60, tell=tell)
    history = campaign.run()
    violations = check(history)
    gaps = missing(history, names=script.expected_names(), acts=script.ACTS)
    for name, figure in tally(history, violations).items():
        print(f"{name:>24}  {figure}")
    for violation in violations[:SHOWN]:
        print(f"  {violation}")
    if len(violations) > SHOWN:
        print(f"  … and {len(violations) - SHOWN} more")
    for gap in gaps:
        print(f"  not reached: {gap}")
    verdict = "FAIL" if violations else "UNKNOWN" if gaps or not campaign.drained else "PASS"
    tell(f'{verdict}; the same run again: make chaos ARGS="--seed {options.seed} --minutes {options.minutes:g}"')
    return VERDICTS[verdict]


def _defects(stack: Stack) -> int:
    from tests.chaos.planted import PLANTED, play

    missed = 0
    for defect, (scenario, speak) in PLANTED.items():
        found = check(play(defect, scenario=scenario, address=stack.embedded.database_url, folder=stack.home.path))
        caught = [violation for violation in found if violation.invariant in speak]
        missed += not caught
        tell(f"{defect}: {caught[0] if caught else 'NOT CAUGHT'}")
        falsely = check(play("none", scenario=scenario, address=stack.embedded.database_url, folder=stack.home.path))
        missed += bool(falsely)
        for violation in falsely:
            tell(f"  without it, falsely: {violation}")
    tell("FAIL" if missed else f"PASS: {len(PLANTED)} defects, each caught, none found where there is none")
    return int(bool(missed))


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
