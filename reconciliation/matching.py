"""What lines of theirs and an operation of ours say about each other. Pure.

Identity settles what belongs together; our record's own reference does where a line carries no identity. Likeness only
ever suggests. Nothing here changes an operation.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reconciliation.comparison import in_words

CONFIRMED, DIFFERENT, DUPLICATE, UNCONFIRMED = "confirmed", "different", "duplicate", "unconfirmed"
OTHER_AMOUNT, OTHER_ACCOUNT, MISSING_HERE, MISSING_THERE = (
    "other_amount", "other_account", "missing_here", "missing_there",
)  # fmt: skip
MISSING, UNKNOWN, NOT_OURS = "missing", "unknown", "not_ours"
# the effect's fields that say whose account it is; a line's account is any of them
ACCOUNT_FIELDS = ("customer", "account", "account_name")
LIKE_WITHIN = dt.timedelta(days=2)
MOST_ALIKE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Theirs:
    """A line of a statement. `stands` is its amount, or nothing where it is void."""

    number: int
    reference: str
    identity: str
    account: str
    amount_minor: int
    currency: str
    at: dt.datetime
    void: bool = False

    @property
    def stands(self) -> int:
        return 0 if self.void else self.amount_minor


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """An operation as our record has it. `state` is succeeded, reversed, failed (as is one given up) or open;
    `amount_minor` what was settled, or sent; `reference` what it was settled by and `references` all names that the
    other side has for it, `known_second` one that a person has named as a second record already."""

    state: str
    amount_minor: int
    currency: str
    accounts: frozenset[str]
    references: frozenset[str]
    reference: str = ""
    identity: str = ""
    known_second: str = ""

    @property
    def stands(self) -> int:
        return self.amount_minor if self.state == "succeeded" else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """`lines` gives (result, what it tells) for each line in the order given; `result` and `tells` are the operation's,
    by the one line that is it.
    `case` is the kind of case where a person has to look, `about` then names what is disputed, the same every time."""

    lines: tuple[tuple[str, str], ...]
    result: str
    tells: str
    case: str = ""
    about: tuple[str, ...] = ()


def judge(*, ours: Ours, lines: Sequence[Theirs]) -> Judged:
    """All lines of one statement that belong to one operation; at least one."""
    if ours.state == "open":
        tells = "our record does not know yet whether it happened; the other side is asked now"
        return Judged(lines=((UNCONFIRMED, ""),) * len(lines), result=UNCONFIRMED, tells=tells)
    main = _main(ours, lines)
    standing = {one.reference for one in lines if not one.void}
    second = sorted(standing - {lines[main].reference, ours.known_second})
    differs = _differences(ours, lines[main])
    result = DIFFERENT if differs else CONFIRMED
    told = tuple(
        (result, differs) if place == main else (DUPLICATE, _second(one, lines[main], ours))
        for place, one in enumerate(lines)
    )
    tells = differs or ("; ".join(text for what, text in told if what == DUPLICATE) if len(lines) > 1 else "")
    if second and ours.state in ("succeeded", "reversed"):
        named = " and ".join(sorted({lines[main].reference, *second}))
        both = f"{named} carry one identity" + (f"; {differs}" if differs else "")
        return Judged(lines=told, result=result, tells=both, case=DUPLICATE, about=(DUPLICATE, *second))
    if differs:
        one = lines[main]
        about = (DIFFERENT, one.reference, str(one.amount_minor), one.currency, one.account, str(one.void))
        return Judged(lines=told, result=result, tells=tells, case=_kind(ours, one), about=about)
    return Judged(lines=told, result=result, tells=tells)


def _kind(ours: Ours, line: Theirs) -> str:
    """Of what kind the case about these differences is."""
    if ours.state == "failed":
        return MISSING_HERE
    differing = frozenset(_mismatch(ours, line))
    if ours.state != "succeeded" or line.void or (ours.references and line.reference not in ours.references):
        return DIFFERENT
    return {frozenset({"amount_minor"}): OTHER_AMOUNT, frozenset({"account"}): OTHER_ACCOUNT}.get(differing, DIFFERENT)


def _main(ours: Ours, lines: Sequence[Theirs]) -> int:
    """The line that is the operation: the one our record names, else the first that stands."""
    order = [
        (one.reference not in ours.references, one.void, one.at, one.number, place) for place, one in enumerate(lines)
    ]
    return min(order)[-1]


def _second(one: Theirs, main: Theirs, ours: Ours) -> str:
    if one.reference == main.reference:
        return f"{one.reference} is listed more than once"
    if one.void:
        return f"a second record, {one.reference}, void since"
    if one.reference == ours.known_second:
        return f"the second record, {one.reference}, which a person has named already"
    return f"a second record, {one.reference}"


def _differences(ours: Ours, line: Theirs) -> str:
    """What differs between our record and the line that is it, in words; empty when nothing does."""
    if ours.state == "failed":
        return "" if line.void else f"our record says that nothing was done, and they have recorded {line.reference}"
    if ours.state == "reversed":
        return "" if line.void else f"our record says that {line.reference} was reversed, and it stands there"
    if line.void:
        return f"{line.reference} is void there"
    mismatch = _mismatch(ours, line)
    words = in_words(mismatch=mismatch, currency=ours.currency) if mismatch else ""
    if ours.references and line.reference not in ours.references:
        here = ours.reference or sorted(ours.references)[0]
        words += ("; " if words else "") + f"it is {line.reference} there and {here} here"
    return words


def _mismatch(ours: Ours, line: Theirs) -> dict[str, tuple[str, str]]:
    """Field → (ours, theirs) where they differ."""
    mismatch: dict[str, tuple[str, str]] = {}
    if (line.amount_minor, line.currency) != (ours.amount_minor, ours.currency):
        mismatch["amount_minor"] = (str(ours.amount_minor), str(line.amount_minor))
        if line.currency != ours.currency:
            mismatch["currency"] = (ours.currency, line.currency)
    if line.account and ours.accounts and line.account.casefold() not in ours.accounts:
        mismatch["account"] = (" or ".join(sorted(ours.accounts)), line.account)
    if line.identity and ours.identity and line.identity != ours.identity:
        mismatch["identity"] = (ours.identity, line.identity)
    return mismatch


def accounts_of(*, effect: Mapping[str, object]) -> frozenset[str]:
    return frozenset(str(effect[name]).casefold() for name in ACCOUNT_FIELDS if effect.get(name))


def alike(*, ours: Ours, at: dt.datetime, lines: Iterable[Theirs]) -> list[str]:
    """References of lines without an identity that look like the operation: amount, account where the line has one, and
    time. They prove nothing."""
    found = [
        one
        for one in lines
        if not one.identity and not one.void and (one.amount_minor, one.currency) == (ours.amount_minor, ours.currency)
        and (not one.account or one.account.casefold() in ours.accounts)
        and abs(one.at - at) <= LIKE_WITHIN
    ]  # fmt: skip
    return [one.reference for one in sorted(found, key=lambda one: abs(one.at - at))[:MOST_ALIKE]]


# ---- totals


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """One row of a currency's totals. `theirs` and `ours` are (how many, minor units that stand)."""

    result: str
    theirs: tuple[int, int] = (0, 0)
    ours: tuple[int, int] = (0, 0)

    @property
    def difference(self) -> int:
        """Theirs less ours."""
        return self.theirs[1] - self.ours[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """All rows of one currency, and their sum: the whole list of theirs beside all of ours."""

    currency: str
    rows: tuple[Sum, ...]

    @property
    def whole(self) -> Sum:
        def add(pairs: list[tuple[int, int]]) -> tuple[int, int]:
            return sum(one for one, _ in pairs), sum(two for _, two in pairs)

        return Sum(result="", theirs=add([one.theirs for one in self.rows]), ours=add([one.ours for one in self.rows]))


ORDER = (CONFIRMED, DIFFERENT, DUPLICATE, UNCONFIRMED, MISSING, UNKNOWN, NOT_OURS)
Counted = Iterable[tuple[str, str, int, int]]


def totals(*, theirs: Counted, ours: Counted) -> list[Totals]:
    """Both sides by currency and result, from (currency, result, how many, minor units) of each; one sum for each
    currency, in which every line and every operation is counted once. Unread lines have no amount and are not here."""
    found: dict[str, dict[str, Sum]] = {}
    for side, counted in (("theirs", theirs), ("ours", ours)):
        for currency, result, number, minor in counted:
            row = found.setdefault(currency, {}).get(result, Sum(result=result))
            before = row.theirs if side == "theirs" else row.ours
            pair = (before[0] + number, before[1] + minor)
            changed = {"theirs": row.theirs, "ours": row.ours, side: pair}
            found[currency][result] = Sum(result=result, **changed)
    return [
        Totals(currency=currency, rows=tuple(rows[one] for one in ORDER if one in rows))
        for currency, rows in sorted(found.items())
    ]
