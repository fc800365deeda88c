"""A test of the test: each planted defect is caught by the checker, and the product as it is is not accused.

The quick ones; `make chaos ARGS=--defects` plants them all.
"""

import os
from pathlib import Path
from urllib.parse import quote

import pytest
from django.db import connections

from tests.chaos.checking import check
from tests.chaos.defects import DEFECTS
from tests.chaos.planted import PLANTED, QUICK, play

pytestmark = [pytest.mark.crashes, pytest.mark.django_db(transaction=True)]


def address() -> str:
    """The database of the tests, for processes that start with nothing."""
    told = connections["default"].get_connection_params()
    password = quote(told.get("password") or os.environ.get("PGPASSWORD", ""))
    return f"postgresql://{told['user']}:{password}@{told['host']}:{told['port']}/{told['dbname']}"


@pytest.mark.parametrize("defect", QUICK)
def test_a_planted_defect_is_caught(tmp_path: Path, defect: str) -> None:
    scenario, speak = PLANTED[defect]
    found = check(play(defect, scenario=scenario, address=address(), folder=tmp_path))
    assert speak & {violation.invariant for violation in found}, "\n".join(map(str, found)) or "nothing was found"


@pytest.mark.parametrize("scenario", dict.fromkeys(PLANTED[defect][0] for defect in QUICK), ids=lambda each: each.__name__)
def test_the_product_as_it_is_survives_the_same(tmp_path: Path, scenario: object) -> None:
    history = play("none", scenario=scenario, address=address(), folder=tmp_path)  # type: ignore[arg-type]
    assert check(history) == []
    assert history.effects


def test_every_defect_has_its_scenario() -> None:
    assert set(PLANTED) | {"none"} == set(DEFECTS)
