"""Operating from the command line: under a person's name and rights, with each run's result and an honest exit code."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from approvals.models import Freeze
from runs.models import Run
from runs.models.run import RunState
from tests.runpages import world

pytestmark = pytest.mark.usefixtures("db")
RIGHTS = ("runs.view_run", "runs.operate_run", "approvals.freeze")
BY = ("--as", "priya", "--reason", "the prices are wrong")


@pytest.fixture(autouse=True)
def people(db: str) -> None:
    world.person("priya", *RIGHTS)
    world.person("vera", "runs.view_run")


def run(name: str, *arguments: str) -> tuple[str, int]:
    out = StringIO()
    try:
        call_command(name, *arguments, stdout=out)
    except SystemExit as ended:
        return out.getvalue(), int(ended.code or 0)
    return out.getvalue(), 0


def refusal(name: str, *arguments: str) -> str:
    with pytest.raises(CommandError) as caught:
        run(name, *arguments)
    return str(caught.value)


def test_one_run_and_many_each_with_its_result() -> None:
    runs = [world.new_run(subject=f"CS-{n}") for n in range(3)]
    said, code = run("operate_runs", "--pause", "--run", str(runs[0].pk), *BY)
    assert code == 0 and f"{runs[0].pk}  ok" in said and "1 run(s): 1 done, 0 refused" in said
    said, code = run("operate_runs", "--pause", "--workflow", "service_credit", *BY)
    assert code == 1 and "3 run(s): 2 done, 1 refused" in said
    assert f"{runs[0].pk}  already_requested  Somebody has asked for that already." in said
    assert Run.objects.filter(paused_at__isnull=True).count() == 0
    said, code = run("operate_runs", "--resume", "--state", "queued", "--workflow", "service_credit", *BY)
    assert code == 0 and Run.objects.filter(paused_at__isnull=True).count() == 3
    said, code = run("operate_runs", "--to-person", "--run", str(runs[1].pk), *BY)
    runs[1].refresh_from_db()
    assert (code, runs[1].state) == (0, RunState.NEEDS_PERSON)
    said, code = run("operate_runs", "--again", "--run", str(runs[1].pk), *BY)
    assert code == 1 and "needs_person" in said
    assert run("operate_runs", "--cancel", "--state", "waiting", *BY) == ("0 run(s): 0 done, 0 refused\n", 0)


def test_without_the_right_every_run_says_so() -> None:
    one = world.new_run()
    said, code = run("operate_runs", "--cancel", "--run", str(one.pk), "--as", "vera", "--reason", "x")
    assert code == 1 and "no_right  --as: vera may not operate runs: use an account with that right." in said
    assert Run.objects.get().cancel_requested_at is None


def test_what_is_wrong_is_named_and_nothing_is_done() -> None:
    one = str(world.new_run().pk)
    missing = "00000000-0000-0000-0000-000000000000"
    for words, arguments in (
        ("--as", ("--pause", "--run", one, "--as", "nobody", "--reason", "x")),
        ("--reason", ("--pause", "--run", one, "--as", "priya", "--reason", " ")),
        ("--run", ("--pause", "--run", "x", *BY)),
        (missing, ("--pause", "--run", one, "--run", missing, *BY)),
        ("not both", ("--pause", "--run", one, "--state", "queued", *BY)),
        ("there is no 'service_crdit'; there are", ("--pause", "--workflow", "service_crdit", *BY)),
        ("say which runs", ("--pause", *BY)),
        ("one of the arguments", ("--run", one, *BY)),
        ("not allowed with", ("--pause", "--cancel", "--run", one, *BY)),
    ):
        assert words in refusal("operate_runs", *arguments)
    assert Run.objects.get().paused_at is None


def test_freezing_listing_and_lifting() -> None:
    world.new_run(capabilities=["billing.create_credit"])
    assert run("freeze") == ("nothing is frozen\n", 0)
    said, _ = run("freeze", "tool:billing.create_credit", *BY)
    assert said == "frozen: billing.create_credit; 1 live run(s), 0 in flight\n"
    said, _ = run("freeze")
    assert said.startswith("tool:billing.create_credit  since ") and "by Priya Example: the prices are wrong" in said
    assert "frozen already" in refusal("freeze", "tool:billing.create_credit", *BY)
    assert "no freeze of 'all'" in refusal("freeze", "all", "--lift", *BY)
    said, _ = run("freeze", "tool:billing.create_credit", "--lift", *BY)
    assert said.startswith("lifted: billing.create_credit") and run("freeze")[0] == "nothing is frozen\n"
    for words, arguments in (
        (
            "there are all, workflow:correction_notice, workflow:reversal, workflow:service_credit",
            ("tool:no.such", *BY),
        ),
        ("--as", ("all", "--reason", "x")),
        ("Say why", ("all", "--as", "priya")),
        (
            "--as: vera may not freeze or lift a freeze: use an account with that right",
            ("all", "--as", "vera", "--reason", "x"),
        ),
    ):
        assert words in refusal("freeze", *arguments)
    assert Freeze.objects.count() == 1
