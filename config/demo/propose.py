"""`python -m config.demo.propose ADDRESS`: the shop's agent proposes its hundred letters, once in the life of a data folder."""

import os
import sys
from pathlib import Path

from config.demo import world
from config.demo.letters import letters
from config.demo.visitors import Agent


def main() -> int:
    """Tell where the plan is; propose it first if that was never done."""
    address, data_dir = sys.argv[1].rstrip("/"), Path(os.environ["SIGNOFF_DATA_DIR"])
    marker = data_dir / "demo-plan"
    visitors = world.read(data_dir)
    if not marker.exists():
        agent = Agent(address, visitors.token)
        plan = agent.propose(letters(), title="The new editions: a letter to each earlier buyer", event_id="new-editions-2026")
        marker.write_text(str(plan))
    print(f"A plan of 100 letters waits for Alice: {address}/{visitors.workspace}/plans/{marker.read_text()}/")
    return 0


if __name__ == "__main__":
    sys.exit(main())
