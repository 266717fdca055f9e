"""One embedded PostgreSQL for the whole run; a test that needs a database gets its own clone of a migrated template.

Nothing is ever flushed, commits are real, and the application connects as its own role, so privileges and triggers
are the product's. `owner` gives a connection that may tamper with what the application must not touch.
"""

import contextlib
import fcntl
import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import psycopg
import pytest
from playwright.sync_api import expect

from agentops.local.postgres import EmbeddedPostgres
from agentops.local.variables import DATABASE

# a slow machine fails no test: how long an example takes says nothing about the product
hypothesis.settings.register_profile(
    "any machine", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("any machine")

# nor how long a page takes; once for all, since the files of a process share it
expect.set_options(timeout=120_000)

REPO = Path(__file__).resolve().parent.parent
TEMPLATE = "agentops_template"
PEOPLED = "agentops_peopled"
_numbers = itertools.count(1)


def manage(*arguments: str, env: dict[str, str]) -> str:
    """Run manage.py in a process of its own and return its output; fails the test when it fails."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=REPO,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "agentops.settings", **env},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose database is migrated, made once for all processes of a run; to be copied with `copied`."""
    together = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        together = together.parent
    with (together / "migrated.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        folder, draft = together / "migrated", together / "migrated.new"
        if not folder.exists():
            with EmbeddedPostgres(draft, tests=True) as server:
                server.create_database(TEMPLATE)
                manage("migrate", "--verbosity", "0", env={"DATABASE_URL": server.url("owner", TEMPLATE)})
                server.create_database(DATABASE, template=TEMPLATE)
            draft.rename(folder)
    return folder


def copied(folder: Path, place: Path) -> Path:
    """A copy of the data folder `folder` at `place`, which is not there yet; each file keeps its owner."""
    subprocess.run(["cp", "-a", folder, place], check=True)
    return place


@pytest.fixture(scope="session")
def postgres(migrated: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(copied(migrated, tmp_path_factory.mktemp("postgres") / "data"), tests=True) as server:
        yield server


@pytest.fixture(scope="session")
def peopled(postgres: EmbeddedPostgres, django_db_blocker: object) -> str:
    """The name of a second template, which has the demo world's people and policies: making them anew takes longer than
    most of the tests that need them."""
    from agentops.demo.people import ensure_people, ensure_policies

    postgres.create_database(PEOPLED, template=TEMPLATE)
    with connected(postgres.url("app", PEOPLED), django_db_blocker):
        ensure_people()
        ensure_policies()
    return PEOPLED


@pytest.fixture
def database(request: pytest.FixtureRequest, postgres: EmbeddedPostgres) -> Iterator[str]:
    """The name of a fresh clone of the migrated template; with people in it for who asks for the `world` of workers."""
    name = f"test_{next(_numbers)}"
    template = request.getfixturevalue("peopled") if "world" in request.fixturenames else TEMPLATE
    postgres.create_database(name, template=template)
    yield name
    postgres.drop_database(name)


@contextlib.contextmanager
def connected(url: str, blocker: object) -> Iterator[None]:
    """Django's default connection goes to `url` meanwhile. Threads open their own connections to it."""
    import dj_database_url
    from django.db import connections

    connection = connections["default"]
    before = dict(connection.settings_dict)
    parsed = dj_database_url.parse(url)
    for settings in (connection.settings_dict, connections.settings["default"]):
        settings.update({key: parsed[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")})
    try:
        with blocker.unblock():  # type: ignore[attr-defined]
            yield
            connections.close_all()
    finally:
        for settings in (connection.settings_dict, connections.settings["default"]):
            settings.update({key: before[key] for key in ("NAME", "USER", "PASSWORD", "HOST", "PORT")})


@pytest.fixture
def db(database: str, postgres: EmbeddedPostgres, django_db_blocker: object) -> Iterator[str]:
    """Django's default connection on a clone, as the application's role."""
    with connected(postgres.url("app", database), django_db_blocker):
        yield database


@pytest.fixture
def owner(database: str, postgres: EmbeddedPostgres) -> Iterator[psycopg.Connection]:
    """An autocommitting connection as the tables' owner: may change what the application's role may not."""
    with psycopg.connect(postgres.url("owner", database), autocommit=True) as connection:
        yield connection


# what starts processes of its own (servers, workers, the sandbox), looks at whole pages or takes many rounds: not part
# of the fast run
FOLDERS = (
    "bench",
    "desk",
    "docs",
    "engine",
    "external",
    "limits",
    "local",
    "pages",
    "runpages",
    "sandbox",
    "statements",
    "story",
    "tools",
    "undoing",
)
FILES = (
    "api/test_anything.py",
    "api/test_awkward_texts.py",
    "api/test_event_effects.py",
    "api/test_events.py",
    "approvals/test_advice.py",
    "approvals/test_enough_people.py",
    "approvals/test_large_list.py",
    "approvals/test_races.py",
    "operating/test_admin_site.py",
    "operating/test_settings.py",
    "telling/test_pages.py",
)


STACKS = ("chaos", "external", "limits", "local", "story")


def spread(files: list[tuple[bool, list[pytest.Item]]]) -> list[pytest.Item]:
    """The files' tests, those of long files at even distances in the first three quarters: side by side with short
    ones they leave no process idle at the end, and few of them run at once."""
    long = [tests for is_long, tests in files if is_long]
    short = [tests for is_long, tests in files if not is_long]
    step = max(1, len(short) * 3 // (4 * len(long) or 1))
    order = []
    for number, tests in enumerate(short):
        if number % step == 0 and long:
            order.append(long.pop(0))
        order.append(tests)
    return [test for tests in [*order, *long] for test in tests]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what takes long by where it lives, so that `make test-fast` needs no list of its own, and spread it."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        place = item.path.relative_to(REPO / "tests")
        if place.parts[0] in FOLDERS or place.as_posix() in FILES:
            item.add_marker(pytest.mark.stack)
        files.setdefault(place, []).append(item)
    items[:] = spread(
        [
            (place.parts[0] in STACKS or any(one.get_closest_marker("browser") for one in tests), tests)
            for place, tests in files.items()
        ]
    )
