"""Whatever a vote on the page is refused for, the comment typed with it is there again: in the form where the person
may still answer, else in words."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.contrib.auth.models import Group, User

from approvals.models import ApprovalRequest, Refusal, Stage
from approvals.services import freezing
from runs.models import Run
from runs.services import principals
from tests.pages import world
from tests.pages.test_decision import click, signed_in

pytestmark = pytest.mark.usefixtures("db")
TYPED = "seen with <the> “customer”"
ESCAPED = "seen with &lt;the&gt; “customer”"


@pytest.fixture
def maya(db: str) -> User:
    return world.person("Maya Lindgren", "manager")


def frozen(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    assert freezing.freeze(scope="all", principal=principals.system(), reason="looking").ok


def other_facts(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    world.read(ask.run, reading=2, story=world.Story(invoice_version="9"))


def other_policy(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    world.policy(number=2, document={**world.DOCUMENT, "rules": [{**world.DOCUMENT["rules"][0], "when": "true"}]})


def not_granted(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    owner.execute("UPDATE runs_run SET capabilities = '[]'")


def nothing(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    """What is posted is enough to be refused."""


def changed(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    moved = {"key": "invoice", "label": "Invoice", "old": "v2", "new": "v3"}
    owner.execute("UPDATE approvals_approvalrequest SET changes = %s", [psycopg.types.json.Jsonb([moved])])


def retyped(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    owner.execute("UPDATE approvals_approvalrequest SET confirm = 'retype'")


def needed_elsewhere(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    world.person("Jonas Weber", "manager")
    Stage.objects.create(
        request=ask, position=2, name="Maya", person=maya, quorum=1, added_by=principals.system(), added_why="knows it",
    )  # fmt: skip


def no_right(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    maya.groups.set([Group.objects.get(name="support")])


def may_not_look(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    maya.groups.clear()


def inactive(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    User.objects.filter(pk=maya.pk).update(is_active=False)


def cancelled(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    Run.objects.update(cancel_requested_at=ask.created_at)


def sent_back(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    world.close(ask, "send_back", "what for?")


def superseded(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    world.close(ask, "supersede", "moved")


def decided(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    world.decide(ask, world.person("Jonas Weber", "manager"))


def later(ask: ApprovalRequest, maya: User, owner: psycopg.Connection) -> None:
    owner.execute("UPDATE approvals_stage SET groups = '[\"finance\"]'")
    Stage.objects.create(request=ask, position=2, name="Managers", groups=["manager"], quorum=1, in_turn=True)


FORM, KEPT, WORDS = "in the form", "in words until the form comes", "in words"
CASES: dict[str, tuple[Callable[..., None], str]] = {
    "frozen": (frozen, FORM),
    "out_of_date": (other_facts, FORM),
    "policy_changed": (other_policy, FORM),
    "not_granted": (not_granted, FORM),
    "page_differs": (nothing, FORM),
    "unread_changes": (changed, FORM),
    "retype_needed": (retyped, FORM),
    "needed_elsewhere": (needed_elsewhere, FORM),
    "no_right": (no_right, KEPT),
    "not_yet": (later, KEPT),
    "superseded": (superseded, KEPT),
    "cancelled": (cancelled, KEPT),
    "may not look": (may_not_look, WORDS),
    "inactive": (inactive, WORDS),
    "sent_back": (sent_back, WORDS),
    "decided": (decided, WORDS),
}


@pytest.mark.parametrize("code", list(CASES))
def test_a_refused_comment_is_there_again(maya: User, owner: psycopg.Connection, code: str) -> None:
    ask, browser = world.ask(), signed_in(maya)
    change, where = CASES[code]
    change(ask, maya, owner)
    more: dict[str, Any] = {"page_digest": "0" * 64} if code == "page_differs" else {}
    answer = click(browser, ask, maya, "approve_confirmed", comment=TYPED, **more)
    assert answer.status_code in (403, 409, 422) and not ask.votes.filter(principal__user=maya).exists()
    assert Refusal.objects.get().code == {"may not look": "no_right"}.get(code, code)
    text = answer.content.decode()
    assert (f'value="{ESCAPED}"' in text) == (where == FORM)
    assert (f'data-keep="{ESCAPED}"' in text) == (where == KEPT)
    assert (f"Your comment was not sent: “{ESCAPED}”" in text) == (where != FORM)
