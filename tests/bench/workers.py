"""Two worker processes, as they are started on a server, ended together. `python -m tests.bench.workers`."""

import subprocess
import sys

if __name__ == "__main__":
    words = [sys.executable, "-m", "celery", "-A", "config", "worker", "--loglevel", "WARNING", "-n"]
    for process in [subprocess.Popen([*words, f"{name}@%h"]) for name in ("one", "two")]:
        process.wait()
