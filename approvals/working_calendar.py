"""The installation's calendar of working time, from its settings."""

from django.conf import settings

from approvals.working_time import Calendar


def calendar() -> Calendar:
    found: Calendar = settings.WORKING_TIME
    return found


def in_words() -> str:
    """`Monday to Friday, 09:00 to 17:00, Europe/London`."""
    found = calendar()
    names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    days = sorted(found.days)
    run = days == list(range(days[0], days[-1] + 1)) and len(days) > 2
    said = f"{names[days[0]]} to {names[days[-1]]}" if run else ", ".join(names[day] for day in days)
    return f"{said}, {found.begins:%H:%M} to {found.ends:%H:%M}, {found.zone.key}"
