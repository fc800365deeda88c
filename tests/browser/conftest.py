"""A real Chromium, found on this machine and never downloaded."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from pytest_django.live_server_helper import LiveServer

from accounts.models import User
from tests import world

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MISSING = f"No Chromium was found: install Debian's chromium, or put one of {', '.join(NAMES)} on the PATH."
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip

type Opener = Callable[..., AbstractContextManager[Page]]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "tests/browser" in str(item.path):
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="package")
def chromium(django_db_setup: None) -> Iterator[Browser]:
    """The browser. It ends with this package: its event loop would be in the way of other tests."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(MISSING)
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # Playwright's loop runs in this thread, and Django takes it for an async context; the ORM never enters it.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def opened(chromium: Browser, live_server: LiveServer) -> Opener:
    """`with opened(world.alice()) as page`: a window in which she is signed in. What the console says fails the test."""

    @contextmanager
    def window(
        user: User | None = None, *, width: int = 1280, theme: str = "auto", script: bool = True, expected: str = "nothing"
    ) -> Iterator[Page]:
        context = chromium.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": 900},
            java_script_enabled=script,
            reduced_motion="reduce",
        )
        cookies = {"theme": theme} | ({"sessionid": world.signed_in(user).cookies["sessionid"].value} if user else {})
        context.add_cookies([{"name": name, "value": value, "url": live_server.url} for name, value in cookies.items()])
        page = context.new_page()
        page.set_default_timeout(10_000)
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        yield page
        context.close()
        assert [words for words in said if expected not in words] == []

    return window
