"""Who has a part in a run, and so never answers what it asks: whoever started it, runs it, or proposed or edited any
action of it. Reads only."""

import uuid
from collections.abc import Iterable, Sequence
from functools import reduce
from operator import or_

from django.db.models import Q

from runs import hot
from runs.models import Principal, Proposal, Run


def involved(*, run: Run, user_ids: Iterable[int]) -> set[int]:
    """Those of the users who have a part in the run."""
    return involved_in(runs=[run], user_ids=user_ids)[run.pk]


def involved_in(*, runs: Iterable[Run], user_ids: Iterable[int]) -> dict[uuid.UUID, set[int]]:
    """The same for several, by run."""
    people = _principals(user_ids)
    found = _started([(run.pk, run.initiator_id, run.run_as_id, run.agent_id) for run in runs], people)
    return _with_proposers(found, list(found), people)


def involved_among(*, runs: Iterable[uuid.UUID], user_ids: Iterable[int]) -> dict[uuid.UUID, set[int]]:
    """The same for very many, by the runs' ids: those runs alone in which any of the users has a part."""
    people, ids = _principals(user_ids), hot.array(ids=runs)
    names = ("initiator_id", "run_as_id", "agent_id")
    own = reduce(or_, (Q(hot.among(column=name, kind="uuid", values=list(people))) for name in names))
    there = Run.objects.filter(hot.among(column="id", kind="uuid", values=ids), own).order_by()
    return _with_proposers(_started(there.values_list("pk", *names), people), ids, people)


def _started(runs: Iterable[Sequence[uuid.UUID]], people: dict[uuid.UUID, int]) -> dict[uuid.UUID, set[int]]:
    """By run, each with the principals by whom it was started and is run."""
    return {pk: {people[one] for one in own if one in people} for pk, *own in runs}


def _principals(user_ids: Iterable[int]) -> dict[uuid.UUID, int]:
    """The users by their principals, as far as they have any."""
    return {one.pk: one.user_id or 0 for one in _PRINCIPALS(users=sorted(set(user_ids)))}


def _with_proposers(
    found: dict[uuid.UUID, set[int]], runs: list[uuid.UUID] | str, people: dict[uuid.UUID, int]
) -> dict[uuid.UUID, set[int]]:
    for one in _PROPOSED(runs=runs, people=list(people)) if people else ():
        found.setdefault(one.run_id, set()).add(people[one.proposer_id])
    return found


_PRINCIPALS = hot.Query(
    lambda users: Principal.objects.filter(hot.among(column="user_id", kind="int", values=users)).order_by()
)
_PROPOSED = hot.Query(
    lambda runs, people: Proposal.objects.filter(
        hot.among(column="run_id", kind="uuid", values=runs),
        hot.among(column="proposer_id", kind="uuid", values=people),
    ).order_by()
)
