"""Where the undoing of a run's operations stands: what was proposed, by whom, in which order, what came of it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from agentops.pages.reversal_words import STATES
from reconciliation import reversing
from reconciliation.models import Operation, Reversal
from reconciliation.reversing import Undo
from runs import words
from runs.models import Run
from runs.words import Look


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One reversal, and how it stands: by its own run while that goes on."""

    reversal: Reversal
    look: Look


@dataclass(frozen=True, slots=True, kw_only=True)
class Undoing:
    """`steps` in the order in which they were proposed; `told` is their progress, where there are several."""

    steps: Sequence[Step]

    @property
    def told(self) -> str:
        done = sum(one.reversal.result == Reversal.Result.DONE for one in self.steps)
        return f"{done} of {len(self.steps)} reversed" if len(self.steps) > 1 else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """Whether an operation can be undone: `open`, by a proposal now; else `why` not, as a sentence."""

    open: bool
    why: str


def look(*, reversal: Reversal) -> Look:
    """How it stands, in words; its run is read with it."""
    if reversal.result:
        return STATES[reversal.result]
    if reversal.tries and reversal.run is None:
        return STATES["delayed"]
    if reversal.run is not None:
        return words.look(kind="run", state=reversal.run.state)
    return STATES["proposed" if reversal.due_at else "planned"]


def of_run(*, run: Run) -> Undoing:
    """All reversals of what this run did; one query."""
    found = Reversal.objects.filter(operation__run=run).select_related("run", "proposed_by", "operation")
    return Undoing(steps=[Step(reversal=one, look=look(reversal=one)) for one in found.order_by("created_at", "pk")])


def undone_by(*, run: Run) -> Reversal | None:
    """What this run undoes, if it is the run of a reversal."""
    found = Reversal.objects.filter(run=run).select_related("operation__run", "proposed_by")
    return found.first() if run.workflow == "reversal" else None


def way(*, operation: Operation) -> Way:
    """Can somebody propose now that it is undone?"""
    if reversing.living(operation=operation) is not None:
        return Way(open=False, why="")
    undo = reversing.undo_of(operation=operation)
    return Way(open=isinstance(undo, Undo), why="" if isinstance(undo, Undo) else undo)


def by_operation(*, undoing: Undoing) -> dict[object, list[Step]]:
    found: defaultdict[object, list[Step]] = defaultdict(list)
    for one in undoing.steps:
        found[one.reversal.operation_id].append(one)
    return dict(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCancel:
    """What cancelling a run would propose to undo, in that order, and what would stay, with why; in words."""

    undone: Sequence[str]
    stays: Sequence[str]


def on_cancel(*, run: Run) -> OnCancel:
    """By what its tools declare, for what it has done so far."""
    undone, stays = [], []
    for operation in reversing.in_order(run=run):
        undo = reversing.undo_of(operation=operation)
        if isinstance(undo, Undo):
            undone += reversing.planned(operation=operation, reference=undo.reference)
        else:
            stays.append(f"{words.tool(operation.tool)} ({undo[:1].lower()}{undo[1:].rstrip('.')})")
    return OnCancel(undone=undone, stays=stays)
