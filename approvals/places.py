"""Whether there are people enough for several stages, of which each takes some, and nobody answers twice. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Lacking:
    """The stage at `place`, of those given, `needed` so many people; `there` are those that it could have beside what
    the stages before it need, `able` those who fit it at all."""

    place: int
    needed: int
    there: int
    able: int


def lacking(*, needed: Sequence[int], able: Sequence[Collection[int]]) -> Lacking | None:
    """The first stage that could not have its people, whoever answers where; None where all could. Both in the order
    of the stages: how many each still needs (none where that is not above 0), and whose answer it would take, by id."""
    in_all = sum(needed)
    if all(len(people) >= in_all for people in able):  # plainly: each could be served last
        return None
    taken: dict[int, int] = {}  # who answers in which place

    def seat(place: int, tried: set[int]) -> bool:
        """Give the place to somebody, who may have to be moved out of another one."""
        for user_id in able[place]:
            if user_id not in tried:
                tried.add(user_id)
                if user_id not in taken or seat(taken[user_id], tried):
                    taken[user_id] = place
                    return True
        return False

    for place, number in enumerate(needed):
        for there in range(number):
            if not seat(place, set()):
                return Lacking(place=place, needed=number, there=there, able=len(able[place]))
    return None
