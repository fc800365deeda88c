"""The two database roles that web and worker log in as, by name and by address. They own nothing: `sql/roles.sql` says what each may do.

Roles belong to the whole cluster, databases do not: the name of the database stands in theirs, so that two Signoffs on one cluster
(or the databases of a test run) never share one.
"""

from urllib.parse import quote, unquote, urlsplit

WEB, WORKER = "web", "worker"
PROCESSES = {"web": WEB, "worker": WORKER, "beat": WORKER}  # of the Procfile, each with the role that it logs in as
LONGEST = 63  # bytes that PostgreSQL keeps of a name


def names_of(database: str) -> dict[str, str]:
    """What the two roles of this database are called. Raises ValueError when the database's own name leaves no room for that."""
    names = {role: f"{database}_{role}" for role in (WEB, WORKER)}
    if any(len(name.encode()) > LONGEST for name in names.values()):
        raise ValueError(f"the name of the database {database!r} is too long to name its roles after it")
    return names


def address_of(database_url: str, role: str, password: str) -> str:
    """`database_url`, for this role (WEB or WORKER) of that database."""
    url = urlsplit(database_url)
    name = names_of(unquote(url.path.lstrip("/")))[role]
    server = url.netloc.rpartition("@")[2]
    return url._replace(netloc=f"{quote(name, safe='')}:{quote(password, safe='')}@{server}").geturl()
