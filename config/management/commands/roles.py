"""`manage.py roles`: make the database roles of web and worker, and give them what `config/sql/roles.sql` says."""

import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DatabaseError, ProgrammingError, connection, transaction
from psycopg import sql

from config import roles
from config.standing import SQL

GRANTS = Path(__file__).resolve().parents[2] / "sql" / "roles.sql"


class Command(BaseCommand):
    help = (
        "Make the two database roles that web and worker log in as, and give them exactly the rights of config/sql/roles.sql. "
        "Run it as the owner of the tables after every migrate; what is right already stays as it is. "
        "Prints the DATABASE_URL of each new role once, with a new password (or that of SIGNOFF_WEB_PASSWORD, SIGNOFF_WORKER_PASSWORD)."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="change nothing; tell what differs, and exit with 1 if anything does"
        )
        parser.add_argument("--new-passwords", action="store_true", help="give roles that exist a new password as well")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            names = roles.names_of(connection.settings_dict["NAME"])
            with transaction.atomic():
                if options["check"]:
                    self._check(names)
                else:
                    self._make(names, renew=options["new_passwords"])
        except ValueError as error:
            raise CommandError(f"{error}.") from None
        except ProgrammingError as error:
            raise CommandError(
                f"{_first_line(error)}: run this as the owner of the database and its tables, after migrate."
            ) from None
        except DatabaseError as error:
            raise CommandError(f"PostgreSQL said: {_first_line(error)}.") from None

    def _make(self, names: dict[str, str], *, renew: bool) -> None:
        known = _ask("existing", names)
        made = [role for role, name in names.items() if name not in known]
        if made and not _may_create_roles():
            raise CommandError(_advice([names[role] for role in made]))
        told = {}
        for role, name in names.items():
            given = {roles.WEB: settings.SIGNOFF_WEB_PASSWORD, roles.WORKER: settings.SIGNOFF_WORKER_PASSWORD}[role]
            if role in made or given or renew:
                told[role] = given or secrets.token_urlsafe(24)
                _log_in(name, told[role], new=role in made)
        _apply(names)
        if more := _ask("excess", names):
            raise CommandError(f"{'; '.join(sorted(more))}: take that away, then run this again.")
        for role, name in names.items():
            self.stdout.write(f"{name} {'was made' if role in made else 'exists'}; its rights are those of config/sql/roles.sql.")
            if role in told and not getattr(settings, f"SIGNOFF_{role.upper()}_PASSWORD"):
                self.stdout.write(f"  Shown this once:  DATABASE_URL={roles.address_of(settings.DATABASE_URL, role, told[role])}")

    def _check(self, names: dict[str, str]) -> None:
        if missing := sorted(set(names.values()) - _ask("existing", names)):
            raise CommandError(f"There is no role {' and no role '.join(missing)}: run `manage.py roles`.")
        before, more = _ask("rights", names), _ask("excess", names)
        _apply(names)
        wanted = _ask("rights", names)
        transaction.set_rollback(True)
        lines = [f"missing: {right}" for right in wanted - before] + [f"too much: {right}" for right in (before - wanted) | more]
        for line in sorted(lines):
            self.stdout.write(line)
        if lines:
            raise CommandError("The roles are not what config/sql/roles.sql says: run `manage.py roles`.")
        self.stdout.write("The roles are what config/sql/roles.sql says.")


def _ask(statement: str, names: dict[str, str]) -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute(SQL[statement], {"roles": list(names.values())})
        return {line for (line,) in cursor.fetchall()}


def _apply(names: dict[str, str]) -> None:
    values = {"database": connection.settings_dict["NAME"], **names}
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(GRANTS.read_text()).format(**{name: sql.Identifier(value) for name, value in values.items()}))


def _log_in(name: str, password: str, *, new: bool) -> None:
    """Make the role, or give it this password. The server sees only the salted hash, and so does its log."""
    with connection.cursor() as cursor:
        pg = cursor.connection.pgconn
        hashed = pg.encrypt_password(password.encode(), name.encode(), b"scram-sha-256").decode()
        role = sql.Identifier(name)
        cursor.execute(
            sql.SQL("{verb} ROLE {role} LOGIN PASSWORD {hashed}").format(
                verb=sql.SQL("CREATE" if new else "ALTER"), role=role, hashed=sql.Literal(hashed)
            )
        )
        cursor.execute(sql.SQL("ALTER ROLE {role} SET search_path = public, pg_temp").format(role=role))


def _may_create_roles() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT rolcreaterole OR rolsuper FROM pg_roles WHERE rolname = current_user")
        return bool(cursor.fetchone()[0])


def _advice(names: list[str]) -> str:
    made = " ".join(f"CREATE ROLE \"{name}\" LOGIN PASSWORD '…';" for name in names)
    return (
        f"{connection.settings_dict['USER']} may not create roles: have an administrator of the cluster run {made} "
        "(each with a password of its own), then run this again."
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
