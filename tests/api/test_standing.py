"""Reading standing approvals by a token, and what a run may do."""

import datetime as dt

from approvals.models.standing import StandingApproval
from runs import clock
from runs.services import tokens
from tests.api.test_operating import Operator, ticket
from tests.approvals import test_standing as given
from tests.approvals import world


def test_what_is_approved_beforehand_is_told_to_tokens_that_may_operate(db: str) -> None:
    given.publish()
    (_, maya), (_, jonas) = given.person("maya"), given.person("jonas")
    one = given.granted(maya, jonas)
    given.asked(maya)
    desk = Operator(tokens.issue(name="desk", label="Desk", may_operate=True))
    (told,) = desk.get("standing-approvals").json()
    assert told["id"] == str(one.pk) and told["by"] == ["Maya", "Jonas"] and told["only"] == {"account": "ACC-1"}
    assert (told["state"], told["left_minor"], told["count_left"], told["period"]) == ("in_force", "400000", 3, "whole")
    assert desk.post("standing-approvals").status_code == 405
    plain = Operator(tokens.issue(name="desk", label="Desk"))
    assert plain.get("standing-approvals").status_code == 403
    assert Operator(None).get("standing-approvals").status_code == 401
    with world.transaction.atomic():
        StandingApproval.objects.filter(pk=one.pk).update(
            state="revoked", ended_by=maya, ended_at=clock.now(), end_reason="x"
        )
    assert desk.get("standing-approvals").json() == []


def test_a_run_says_what_it_may_do(db: str) -> None:
    desk = Operator(tokens.issue(name="desk", label="Desk"))
    made = desk.start(ticket()).json()["id"]
    may = desk.read(made).json()["may"]
    assert {one["tool"] for one in may} == {"billing.create_credit", "helpdesk.update_ticket", "helpdesk.draft_reply"}
    month = f"{clock.now() + dt.timedelta(days=30):%B %Y}"
    assert may[0]["narrowed"][0] == "only where the ticket is CS-8812" and month in may[0]["narrowed"][1]
