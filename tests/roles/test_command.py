"""`manage.py roles`: what it makes, what it says, and what `--check` finds."""

import re
from io import StringIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import connection
from psycopg import sql

from config.management.commands.roles import GRANTS
from config.roles import WEB, WORKER, address_of, names_of
from config.standing import excess
from tests.roles.conftest import PASSWORDS, ActingAs

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    said = StringIO()
    call_command("roles", *arguments, stdout=said)
    return said.getvalue()


def owner(statement: str, roles: dict[str, str]) -> None:
    with connection.cursor() as cursor:
        names = {role: sql.Identifier(name) for role, name in roles.items()}
        cursor.execute(sql.SQL(statement).format(**names))


def test_once_made_there_is_nothing_to_tell_and_running_it_again_changes_nothing(roles: dict[str, str]) -> None:
    assert run("--check") == "The roles are what config/sql/roles.sql says.\n"
    said = run()
    assert "was made" not in said
    assert "DATABASE_URL" not in said
    assert run("--check").startswith("The roles are what")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ("GRANT DELETE ON audit_entry TO {worker}", "too much: {worker} may DELETE audit_entry"),
        ("GRANT UPDATE (ruled) ON effects_effect TO {worker}", "too much: {worker} may UPDATE effects_effect.ruled"),
        ("REVOKE SELECT ON approvals_row FROM {worker}", "missing: {worker} may SELECT approvals_row"),
        ("REVOKE INSERT ON approvals_decision FROM {web}", "missing: {web} may INSERT approvals_decision"),
        ("GRANT SELECT ON accounts_user TO PUBLIC", "too much: everybody may SELECT accounts_user"),
        ("GRANT CREATE ON SCHEMA public TO {web}", "too much: {web} may CREATE schema public"),
        (
            "GRANT EXECUTE ON FUNCTION effect_leaves_a_trail() TO PUBLIC",
            "too much: everybody may EXECUTE effect_leaves_a_trail()",
        ),
        ("GRANT {worker} TO {web}", "too much: {web} is a member of {worker}"),
        ("CREATE TABLE stray (); ALTER TABLE stray OWNER TO {web}", "too much: {web} owns something in this cluster"),
    ],
)
def test_check_tells_what_differs_and_a_run_mends_it(changed: str, told: str, roles: dict[str, str]) -> None:
    if "OWNER TO" in changed:
        owner("GRANT {web} TO CURRENT_USER WITH SET TRUE; GRANT CREATE ON SCHEMA public TO {web}", roles)
    owner(changed, roles)
    said = StringIO()
    with pytest.raises(CommandError, match="The roles are not what"):
        call_command("roles", "--check", stdout=said)
    assert told.format(**roles) in said.getvalue().splitlines()
    if "is a member" in told or "owns" in told:  # not the command's to take away
        with pytest.raises(CommandError, match="take that away"):
            run()
    else:
        run()
        assert run("--check").startswith("The roles are what")


def test_a_new_password_is_shown_once_in_an_address_ready_to_use(roles: dict[str, str]) -> None:
    said = run("--new-passwords")
    found = re.findall(r"DATABASE_URL=postgresql://(\w+):([\w-]{32})@\S+", said)
    assert [name for name, _ in found] == list(names_of(urlsplit(settings.DATABASE_URL).path.lstrip("/")).values())


def test_a_role_that_may_not_make_roles_is_told_what_an_administrator_runs(
    roles: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "config.management.commands.roles.roles.names_of", lambda database: {WEB: "new_web", WORKER: "new_worker"}
    )
    monkeypatch.setattr("config.management.commands.roles._may_create_roles", lambda: False)
    with pytest.raises(CommandError, match=r'CREATE ROLE "new_web" LOGIN PASSWORD .+ CREATE ROLE "new_worker" .+ run this again'):
        run()
    with pytest.raises(CommandError, match="There is no role new_web and no role new_worker"):
        run("--check")


def test_the_web_role_cannot_run_it(acting_as: ActingAs) -> None:
    with acting_as(WEB), pytest.raises(CommandError, match="as the owner of the database"):
        run()


def test_names_stand_for_their_database_and_fit() -> None:
    assert names_of("shop") == {"web": "shop_web", "worker": "shop_worker"}
    with pytest.raises(ValueError, match="too long"):
        names_of("x" * 57)
    assert address_of("postgresql://o:p@db:6543/my%20shop?sslmode=require", WEB, "a/b") == (
        "postgresql://my%20shop_web:a%2Fb@db:6543/my%20shop?sslmode=require"
    )


def test_every_table_has_its_line_among_the_grants() -> None:
    text = Path(GRANTS).read_text()
    given = text[text.index("-- The way in") :]
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v')")
        tables = {name for (name,) in cursor.fetchall()}
        cursor.execute("SELECT proname || '()' FROM pg_proc WHERE pronamespace = 'public'::regnamespace")
        functions = {name for (name,) in cursor.fetchall()}
    assert {table for table in tables if not re.search(rf"\b{table}\b", given)} == set()
    assert {function for function in functions if function not in text} == set()


def test_no_role_may_delete_but_what_sign_in_forgets(roles: dict[str, str]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, a.privilege_type FROM pg_class c, aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee"
            " WHERE r.rolname = ANY(%s) AND a.privilege_type NOT IN ('SELECT', 'INSERT', 'UPDATE')",
            [list(roles.values())],
        )
        found = {(table, privilege) for table, privilege in cursor.fetchall()}
    assert found == {(table, "DELETE") for table in ("django_session", "account_emailaddress", "account_emailconfirmation")}


@pytest.mark.parametrize(("role", "process"), [(WEB, WEB), (WORKER, WORKER)])
def test_each_process_may_log_in_as_its_own_role(role: str, process: str, acting_as: ActingAs) -> None:
    with acting_as(role):
        assert excess(process) == ""


@pytest.mark.parametrize(("role", "process", "said"), [(WEB, WORKER, "may approve plans"), (WORKER, WEB, "may reserve effects")])
def test_neither_may_log_in_as_the_other(role: str, process: str, said: str, acting_as: ActingAs) -> None:
    with acting_as(role):
        assert said in excess(process)


def test_the_owner_is_told_apart(roles: dict[str, str]) -> None:
    assert re.search("is a superuser|may create roles|owns tables", excess(WEB))
    assert PASSWORDS[WEB] != PASSWORDS[WORKER]
