"""A small world for approvals: people, a published policy, a run with evidence, a proposal and an open request."""

import datetime as dt
import itertools
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.db import connections, transaction

from approvals import queries
from approvals.evaluation import Verdict
from approvals.models import ApprovalRequest, PolicyVersion
from approvals.requirement import Requirement
from approvals.services import requests, votes
from runs import transitions
from runs.actions import Action
from runs.canonical import digest
from runs.models import Event, Evidence, Principal, Proposal, Run
from runs.models.run import RunState
from runs.services import principals
from tests import published

TOOL = "billing.create_credit"
_numbers = itertools.count(1)


def user(name: str, *, group: str = "manager", **fields: Any) -> User:
    """A person; in `group`, whose members may vote, unless it is ""."""
    made = User.objects.create(username=name, first_name=name.title(), password="!", **fields)
    if group:
        made.groups.add(voters(group))
    return made


def voters(name: str) -> Group:
    group, made = Group.objects.get_or_create(name=name)
    if made:
        group.permissions.add(Permission.objects.get(codename="vote", content_type__app_label="approvals"))
    return group


def machine(kind: Principal.Kind, key: str) -> Principal:
    return principals.find_or_make(kind=kind, key=key, label=key)


def document(*, quorum: int = 1, group: str = "manager") -> dict[str, Any]:
    ask = {"group": group, "quorum": quorum, "respond_within_minutes": 240, "valid_for_minutes": 60}
    return {"rules": [{"id": "ask", "effect": "ask", "text": "A manager decides", "when": "true", "ask": ask}]}


def policy(*, quorum: int = 1) -> PolicyVersion:
    return published.publish(
        slug="service-credits",
        name="Service credits",
        tools=[TOOL],
        document=document(quorum=quorum),
        note="",
    )


def verdict(*, quorum: int = 1, group: str = "manager", **more: Any) -> Verdict:
    """`more` are the requirement's other fields: stages, in_order and so on."""
    return Verdict(
        effect="ask",
        rules=[{"id": "ask", "text": "A manager decides"}],
        need=Requirement(
            group=group,
            quorum=quorum,
            respond_within=dt.timedelta(minutes=240),
            valid_for=dt.timedelta(minutes=60),
            **more,
        ),
    )


def run(*, initiator: Principal | None = None) -> Run:
    number = next(_numbers)
    return Run.objects.create(
        workflow="service-credit",
        workflow_version="1",
        start_key=f"ticket:{number}:{uuid.uuid4()}",
        input={"ticket": f"CS-{number}"},
        input_digest="0" * 64,
        title="Service credit",
        subject=f"CS-{number}",
        capabilities=[TOOL],
        initiator=initiator or machine(Principal.Kind.INTEGRATION, "integration:desk"),
        run_as=machine(Principal.Kind.SERVICE, "service:credits"),
        agent=machine(Principal.Kind.AGENT, "agent:service-credit"),
    )


def read(*, of: Run, reading: int, version: str = "3", kind: str = "invoice", locator: str = "INV-2041") -> Evidence:
    return Evidence.objects.create(
        run=of,
        reading=reading,
        kind=kind,
        source="billing",
        locator=locator,
        version=version,
        title=locator,
        summary="",
        authoritative=True,
        untrusted=False,
        content={"version": version},
        content_digest=digest({"version": version}),
        bound_digest=digest({"version": version}),
    )


def propose(*, of: Run, rests_on: list[Evidence], by: Principal | None = None, minor: int = 120_000) -> Proposal:
    number = of.proposals.count() + 1
    action = Action(
        tool=TOOL, contract_version="1", effect={"account": "ACC-1", "amount_minor": str(minor), "currency": "USD"}
    )
    return Proposal.objects.create(
        run=of,
        number=number,
        step="credit",
        predecessor=of.proposals.order_by("-number").first(),
        proposer=by or of.agent,
        tool=action.tool,
        contract_version="1",
        effect=action.effect,
        action_digest=action.digest(),
        identity=f"test/{TOOL}/{uuid.uuid4()}",
        business_key=f"credit/{of.subject}",
        amount_minor=minor,
        currency="USD",
        reading=rests_on[0].reading if rests_on else 1,
        rests_on=[str(piece.pk) for piece in rests_on],
    )


def rows(*, version: str = "3", amount: str = "$1,200.00 USD") -> list[dict[str, str]]:
    return [
        {"key": "amount", "label": "Amount", "value": amount},
        {"key": "invoice", "label": "Invoice", "value": f"INV-2041 · v{version}"},
    ]


@dataclass
class Asked:
    """An open request with everything around it."""

    run: Run
    proposal: Proposal
    version: PolicyVersion
    request: ApprovalRequest

    def fresh(self) -> ApprovalRequest:
        return ApprovalRequest.objects.get(pk=self.request.pk)

    def events(self, *kinds: str) -> list[str]:
        found = Event.objects.filter(stream=f"run:{self.run.pk}").order_by("seq").values_list("kind", flat=True)
        return [kind for kind in found if kind in kinds or not kinds]


def ask(
    *,
    initiator: Principal | None = None,
    proposer: Principal | None = None,
    quorum: int = 1,
    minor: int = 120_000,
    version: PolicyVersion | None = None,
    **kw: Any,
) -> Asked:
    """A run that waits for an approval. The policy is published here unless given."""
    version = version or policy(quorum=quorum)
    made = run(initiator=initiator)
    invoice = read(of=made, reading=1)
    proposal = propose(of=made, rests_on=[invoice], by=proposer, minor=minor)
    with transaction.atomic(durable=True):
        locked = Run.objects.select_for_update(of=("self",)).get(pk=made.pk)
        actor = principals.system()
        transitions.move(run=locked, to=RunState.GATHERING, actor=actor)
        transitions.move(run=locked, to=RunState.AUTHORISING, actor=actor)
        request = open_one(locked, proposal, version, quorum=quorum, **kw)
        transitions.move(run=locked, to=RunState.AWAITING_APPROVAL, actor=actor, waits_for="an approval", wake_at=None)
    return Asked(run=locked, proposal=proposal, version=version, request=request)


def open_one(
    of: Run,
    proposal: Proposal,
    version: PolicyVersion,
    *,
    quorum: int = 1,
    shown: list[dict[str, str]] | None = None,
    sentence: str = "Issue $1,200.00 service credit to Acme Corp",
    supersedes: ApprovalRequest | None = None,
    **more: Any,
) -> ApprovalRequest:
    binding = queries.newest_binding(run=of, proposal=proposal)
    assert binding is not None
    request, _ = requests.open_request(
        run=of,
        proposal=proposal,
        version=version,
        verdict=verdict(quorum=quorum, **more),
        binding_digest=binding,
        rows=shown if shown is not None else rows(),
        ask=sentence,
        supersedes=supersedes,
        actor=principals.system(),
    )
    return request


def cast(asked: Asked, who: User, choice: str = "approve", **kw: Any) -> votes.VoteResult:
    given: dict[str, Any] = {
        "request_id": asked.request.pk,
        "user": who,
        "choice": choice,
        "comment": "because" if choice == "reject" else "",
        "page_digest": asked.request.page_digest,
        "acknowledged": False,
        "authenticated_by": "password",
        "channel": "page",
    }
    return votes.cast(**{**given, **kw})


def at_once(*actions: Callable[[], Any]) -> list[Any]:
    """Run the actions in threads with connections of their own, released together; what each returned, or raised."""
    barrier = threading.Barrier(len(actions))
    results: list[Any] = [None] * len(actions)

    def work(index: int, action: Callable[[], Any]) -> None:
        try:
            connections["default"].ensure_connection()
            barrier.wait(timeout=120)
            results[index] = action()
        except Exception as error:  # noqa: BLE001  # handed back, so that the test sees it
            results[index] = error
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(actions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive()
    return results


def somebody_waits(*, seconds: float = 120) -> bool:
    """Whether, within a time, some other session of this database stands before a lock that is held."""
    until = time.monotonic() + seconds
    while True:
        with connections["default"].cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks l JOIN pg_database d ON d.datname = current_database()"
                " WHERE NOT l.granted AND l.pid IN (SELECT pid FROM pg_locks WHERE database = d.oid)"
            )
            row = cursor.fetchone()
        if row and row[0]:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(0.01)
