"""Makes the virtual environment and puts the locked packages into it; `make` runs this before all else.

    python3 config/bootstrap.py requirements.txt

Needs nothing but Python. Comes back at once when the lock files are the ones that were installed last time.
"""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = VENV / "install.log"
OLDEST = (3, 12)


def main(names: list[str]) -> int:
    """Install each lock file in turn; gives the exit code."""
    if sys.version_info < OLDEST:
        return refuse("Signoff needs Python 3.12 or newer, and this is " + sys.version.split()[0] + ".")
    if not runs():
        failed = make_venv()
        if failed:
            return failed
    for name in names:
        lock = ROOT / name
        stamp = VENV / f".{name}.sha256"
        wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
        if stamp.exists() and stamp.read_text() == wanted:
            continue
        for old in VENV.glob(".requirements*.sha256"):  # another lock may pin the same package elsewhere
            old.unlink()
        if not install(lock):
            return refuse(
                f"The packages of {name} could not be installed: see the end of {LOG}, "
                "check the connection to the package index, then run the same command again."
            )
        stamp.write_text(wanted)
    return 0


def runs() -> bool:
    """Whether there is a virtual environment whose Python still starts and is new enough."""
    try:
        probe = f"import sys, pip; sys.exit(sys.version_info < {OLDEST})"
        return subprocess.run([PYTHON, "-c", probe], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def make_venv() -> int:
    """Make the virtual environment, in place of a broken one; gives the exit code."""
    try:
        import ensurepip
        import venv
    except ImportError:
        version = ".".join(map(str, sys.version_info[:2]))
        return refuse(
            f"This Python cannot make virtual environments: install its venv package "
            f"(on Debian and Ubuntu: apt install python{version}-venv)."
        )
    del ensurepip
    say(f"Making a virtual environment with Python {sys.version.split()[0]}…\n")
    try:
        venv.create(VENV, clear=True, with_pip=True, symlinks=True)
    except (OSError, subprocess.CalledProcessError) as error:
        return refuse(f"The virtual environment {VENV} could not be made ({error}).")
    return 0


def install(lock: Path) -> bool:
    """Let pip install exactly what the lock file names, wheels only, and show how far it is."""
    total = len(re.findall(r"^[\w.-]+(\[[^]]*\])?==", lock.read_text(), flags=re.MULTILINE))
    command = [
        *(str(PYTHON), "-m", "pip", "install", "--require-hashes", "--only-binary", ":all:"),
        *("--disable-pip-version-check", "--no-input", "--progress-bar", "off", "-r", str(lock)),
    ]
    done = 0
    with LOG.open("w") as log:
        pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert pip.stdout is not None
        for line in pip.stdout:
            log.write(line)
            found = re.match(r"(?:Collecting|Requirement already satisfied:) ([\w.-]+)", line)
            if found:
                done += 1
                progress(f"Packages of {lock.name}: {min(done, total)} of {total} ({found[1].partition('==')[0]})")
            elif line.startswith("Installing"):
                progress(f"Packages of {lock.name}: putting {total} in place…")
    ok = pip.wait() == 0
    progress("")
    if ok:
        say(f"Packages of {lock.name}: {total} in place.\n")
    return ok


def progress(text: str) -> None:
    """Show `text` in the line that the next text takes over; nothing where there is no terminal."""
    if sys.stderr.isatty():
        say(f"\r\033[K{text}")


def refuse(sentence: str) -> int:
    """Say why it does not go on; gives the exit code."""
    say(sentence + "\n")
    return 1


def say(text: str) -> None:
    """Write to the error stream, so that the output of what runs next stays clean."""
    sys.stderr.write(text)
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as trouble:
        sys.exit(refuse(f"The virtual environment could not be made: {trouble}."))
