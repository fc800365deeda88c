"""Named SQL statements, read from `.sql` files: `-- name: sentence`, then the statement."""

import re
from pathlib import Path

HEADING = re.compile(r"^-- ([a-z_]+): .+$", re.MULTILINE)


def read_statements(path: Path) -> dict[str, str]:
    """Each statement of the file by its name."""
    parts = HEADING.split(path.read_text())
    return {name: statement.strip() for name, statement in zip(parts[1::2], parts[2::2], strict=True)}
