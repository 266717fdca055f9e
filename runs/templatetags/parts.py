"""The small parts every page is made of. Load with `{% load parts %}`."""

import datetime as dt
from functools import lru_cache

from django import template
from django.forms import BoundField
from django.template import Context
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from lucide.templatetags.lucide import lucide

from runs import times, words
from runs.money import Money, MoneyError
from runs.texts import unbroken

register = template.Library()

# a question mark in a square: the one sign of "we do not know"; the icon package has only round ones
UNKNOWN_ICON: SafeString = SafeString(
    '<svg class="icon" width="16" height="16" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2"'
    ' stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">'
    '<rect x="3" y="3" width="18" height="18" rx="3"/>'
    '<path d="M9.3 9.3a2.7 2.7 0 0 1 5.3.8c0 1.8-2.6 2.2-2.6 3.8"/><path d="M12 17.2h.01"/></svg>'
)


def _now(context: Context) -> dt.datetime:
    """The page's `now` (the database's time, where the view passed it), else this machine's."""
    now = context.get("now")
    return now if isinstance(now, dt.datetime) else timezone.now()


@register.simple_tag
def icon(name: str, extra: str = "") -> SafeString:
    """A decorative icon, hidden from screen readers: the word beside it carries the meaning."""
    return UNKNOWN_ICON if name == "unknown" else _drawn(str(name), str(extra))


@lru_cache(maxsize=1000)
def _drawn(name: str, extra: str) -> SafeString:
    drawn: str = lucide(name, size=16, **{"class": f"icon {extra}".strip(), "aria_hidden": "true"})
    return mark_safe(drawn)


@register.simple_tag
def state_chip(kind: str, state: str, who: str = "") -> SafeString:
    """Word, icon and colour of a state: `{% state_chip "run" run.state %}`."""
    look = words.look(kind=kind, state=state, who=who)
    return format_html('<span class="chip is-{}">{}{}</span>', look.colour, icon(look.icon), look.word)


@register.simple_tag
def chip(colour: str, icon_name: str, word: str) -> SafeString:
    return format_html('<span class="chip is-{}">{}{}</span>', colour, icon(icon_name), word)


@register.simple_tag
def money(minor: int | str | None, currency: str) -> SafeString:
    """An exact amount, its code beside it; nothing when there is none."""
    if minor in (None, "") or not currency:
        return mark_safe("")
    try:
        amount = Money(int(minor or 0), currency)
    except (MoneyError, ValueError):  # never hide what cannot be formatted: show what is stored
        return format_html('<span class="money">{} <small>{} minor units</small></span>', minor, currency)
    shown = amount.display()
    if amount.currency in shown:  # a currency without a sign of its own: the code is there already
        return format_html('<data class="money" value="{}">{}</data>', amount.plain(), shown)
    return format_html(
        '<data class="money" value="{}">{} <small>{}</small></data>', amount.plain(), shown, amount.currency
    )


@register.simple_tag
def money_text(minor: int, currency: str) -> str:
    """The same for titles, buttons and labels: `$1,200.00 USD`."""
    return str(Money(int(minor), currency))


def _zoned(at: dt.datetime) -> tuple[dt.datetime, str]:
    local = timezone.localtime(at)
    return local, f"{local.isoformat(timespec='seconds')} ({timezone.get_current_timezone_name()})"


@register.simple_tag(takes_context=True)
def when(context: Context, at: dt.datetime | None, style: str = "relative") -> SafeString:
    """A time: `relative` ("4 min ago", kept up by times.js) or `clock` ("13:04"); ISO and zone in the title."""
    if at is None:
        return mark_safe("")
    local, title = _zoned(at)
    now = timezone.localtime(_now(context))
    if style == "clock":
        return format_html(
            '<time datetime="{}" title="{}">{}</time>', local.isoformat(), title, times.clock(at=local, now=now)
        )
    text = times.relative(at=local, now=now)
    return format_html('<time datetime="{}" title="{}" data-relative>{}</time>', local.isoformat(), title, text)


@register.simple_tag(takes_context=True)
def due(context: Context, until: dt.datetime | None, stopped: bool = False) -> SafeString:
    """A deadline that turns amber near its end; kept up by times.js, which reads nothing out each second. One that is
    `stopped` moves on with the time, so nothing is counted down."""
    if until is None:
        return mark_safe("")
    local, title = _zoned(until)
    if stopped:
        return format_html('<span class="due">{}<span>stopped while frozen</span></span>', icon("snowflake"))
    now = _now(context)
    near = (until - now).total_seconds() < times.NEAR_SECONDS
    return format_html(
        '<span class="due{}" title="{}" data-due="{}">{}<span>{}</span></span>',
        " near" if near else "",
        title,
        local.isoformat(),
        icon("clock"),
        times.left(until=until, now=now),
    )


@register.simple_tag(takes_context=True)
def as_user(context: Context) -> SafeString:
    """Who this form was rendered for; a post under another login is refused (see runs.access.someone_else)."""
    return format_html('<input type="hidden" name="as_user" value="{}">', context["request"].user.pk or "")


@register.filter
def span(seconds: float) -> str:
    return times.span(seconds=seconds)


@register.filter
def initials(name: str) -> str:
    parts = [part for part in str(name).split() if part]
    return (parts[0][:1] + (parts[-1][:1] if len(parts) > 1 else "")).upper()


@register.filter
def pairs(text: str) -> list[list[str]]:
    """`"a,A b,B"` as [["a", "A"], ["b", "B"]], for short literal choices in templates."""
    return [item.split(",", 1) for item in text.split()]


@register.simple_tag(takes_context=True)
def now_iso(context: Context) -> str:
    """When this page was made, for the countdowns in it."""
    return _now(context).isoformat()


@register.filter
def control(field: BoundField, first: str = "") -> SafeString:
    """A form field in the product's look, focused when the page opens if `first` is given or its widget says so.

    Django itself marks an invalid one `aria-invalid`.
    """
    kind = getattr(field.field.widget, "input_type", "")
    style = {"checkbox": "form-check-input", "select": "form-select"}.get(kind, "form-control")
    focused = bool(first) or bool(field.field.widget.attrs.get("autofocus"))
    return field.as_widget(attrs={"class": style, "placeholder": "", "autofocus": focused})


@register.filter
def one_row(value: object) -> str:
    """A value that belongs in one row, its line breaks drawn instead of made."""
    return unbroken(text=str(value))
