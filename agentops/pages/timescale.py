"""A time axis on which idle time is folded: real moments to positions of 100. Pure."""

import bisect
import datetime as dt
from collections.abc import Iterable
from dataclasses import dataclass

WIDTH = 87.0  # of 100: the rest is room for the label of what happened last
CUT_WIDTH = 8.5  # of 100, for one folded stretch, as long as there is room
CUTS_AT_MOST = 40.0  # of 100, for all of them together
LEAST_STEP = 0.012  # of the unfolded time: two moments that differ are never drawn on one spot
FOLD_FROM = 2.0  # seconds: shorter stretches are never folded
LONG = 20.0  # seconds: from here on a stretch is folded when it is LONG_SHARE of what is unfolded, else SHORT_SHARE
LONG_SHARE, SHORT_SHARE = 0.3, 0.85
FOLDS_AT_MOST = 5
TICK_ROOM = 9.0


@dataclass(frozen=True, slots=True)
class Cut:
    """A folded stretch: `x` and `width` of 100, and the real time hidden in it."""

    x: float
    width: float
    seconds: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True)
class Tick:
    x: float
    at: dt.datetime


class Scale:
    """Positions from 0 to WIDTH for moments: linear between the given ones, of fixed width where time is folded."""

    def __init__(self, *, moments: Iterable[dt.datetime]) -> None:
        """`moments` in any order, repeated or not; at least one."""
        self._moments = sorted(set(moments))
        if not self._moments:
            raise ValueError("a time axis needs at least one moment")
        gaps = [(b - a).total_seconds() for a, b in zip(self._moments, self._moments[1:], strict=False)]
        self._place(gaps=gaps, folded=_to_fold(gaps))

    def _place(self, *, gaps: list[float], folded: set[int]) -> None:
        width = min(CUT_WIDTH, CUTS_AT_MOST / len(folded)) if folded else 0.0
        open_time = sum(gap for index, gap in enumerate(gaps) if index not in folded)
        weights = {i: max(gap, open_time * LEAST_STEP, 1e-9) for i, gap in enumerate(gaps) if i not in folded}
        room, total = WIDTH - width * len(folded), sum(weights.values())
        self._xs, cuts, x = [0.0], [], 0.0
        for index, gap in enumerate(gaps):
            step = width if index in folded else weights[index] / total * room
            if index in folded:
                cuts.append(Cut(x=x, width=step, seconds=gap))
            x = min(x + step, WIDTH)
            self._xs.append(x)
        self.cuts = tuple(cuts)
        self.ticks = self._ticks()

    def _ticks(self) -> tuple[Tick, ...]:
        ends = {round(cut.x + cut.width, 9) for cut in self.cuts}
        ticks = [Tick(0.0, self._moments[0])]
        for x, at in zip(self._xs[1:], self._moments[1:], strict=True):
            wanted = round(x, 9) in ends or x - ticks[-1].x >= 25.0
            covered = any(x <= cut.x < x + TICK_ROOM for cut in self.cuts)
            if wanted and not covered and x - ticks[-1].x >= TICK_ROOM and x <= WIDTH:
                ticks.append(Tick(x, at))
        return tuple(ticks)

    def at(self, moment: dt.datetime) -> float:
        """The position of 100; moments outside the axis are drawn at its ends."""
        index = bisect.bisect_left(self._moments, moment)
        if index == 0:
            return 0.0
        if index == len(self._moments):
            return self._xs[-1]
        if self._moments[index] == moment:
            return self._xs[index]
        before, after = self._moments[index - 1], self._moments[index]
        share = (moment - before) / (after - before)
        return self._xs[index - 1] + (self._xs[index] - self._xs[index - 1]) * share


def _to_fold(gaps: list[float]) -> set[int]:
    """Which stretches to fold: the longest, again and again, while one is most of what is left to draw."""
    folded: set[int] = set()
    left = sum(gaps)
    for index in sorted(range(len(gaps)), key=lambda i: -gaps[i]):
        share = LONG_SHARE if gaps[index] >= LONG else SHORT_SHARE
        if gaps[index] < FOLD_FROM or gaps[index] < share * left:
            break
        if len(folded) == FOLDS_AT_MOST or len(gaps) - len(folded) <= 1:
            break
        folded.add(index)
        left -= gaps[index]
    return folded
