"""Sending the mail that is due: claim, look once more whether it is still needed, send within a time limit, write down
what came of it. Outside every transaction; a lost mail server keeps nobody waiting but the mail."""

import logging
import smtplib

from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection
from django.db import DatabaseError, InterfaceError

from agentops.telling import letters
from approvals.models import Notice
from approvals.services import outgoing
from approvals.services.preferences import of

log = logging.getLogger(__name__)
REFUSED_TRIES = 5  # an address that the mail server itself refuses so often is given up


class AddressRefused(Exception):
    """The mail server, or the format of mail, refuses this very address for good."""


def send_next() -> int:
    """Send one mail that is due, if any; returns how many notices were worked off."""
    taken = outgoing.take_notices()
    wanted = [notice for notice in taken if not _ended_unsent(notice)]
    if not wanted:
        return len(taken)
    try:
        send(letters.compose(notices=wanted))
    except AddressRefused as problem:
        log.warning("mail %s: %s", wanted[0].pk, problem)
        if wanted[0].tries >= REFUSED_TRIES:
            outgoing.end_notices(notices=wanted, result=Notice.Result.GIVEN_UP, problem=str(problem))
        else:
            outgoing.retry_notices(notices=wanted, problem=str(problem))
    except (smtplib.SMTPException, OSError) as problem:
        log.warning("mail %s was not sent, it is tried again: %s", wanted[0].pk, problem)
        outgoing.retry_notices(notices=wanted, problem=f"{type(problem).__name__}: {problem}")
    except (DatabaseError, InterfaceError):
        raise
    except Exception as problem:  # one that nobody foresaw must not be tried for ever, nor hold up the others
        log.exception("mail %s could not be composed", wanted[0].pk)
        outgoing.retry_notices(notices=wanted, problem=f"{type(problem).__name__}: {problem}")
    else:
        outgoing.end_notices(notices=wanted, result=Notice.Result.SENT)
    return len(taken)


def _ended_unsent(notice: Notice) -> bool:
    """Whether it turned out that this need not be sent any more; then that is written down."""
    if not notice.recipient.is_active:
        outgoing.end_notices(notices=[notice], result=Notice.Result.NOT_NEEDED, problem="inactive")
    elif not notice.recipient.email.strip():
        outgoing.end_notices(notices=[notice], result=Notice.Result.NO_ADDRESS)
    elif of(user=notice.recipient).mail == "none":
        outgoing.end_notices(notices=[notice], result=Notice.Result.NOT_WANTED)
    elif code := outgoing.no_longer(notice=notice):
        outgoing.end_notices(notices=[notice], result=Notice.Result.NOT_NEEDED, problem=code)
    else:
        return False
    return True


def send(letter: letters.Letter) -> None:
    """Hand one mail to the mail server. Raises AddressRefused, smtplib.SMTPException or OSError."""
    message = EmailMultiAlternatives(
        letter.subject,
        letter.text,
        settings.DEFAULT_FROM_EMAIL,
        [letter.to],
        headers=letter.headers,
        connection=get_connection(),
    )
    message.attach_alternative(letter.html, "text/html")
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as problem:
        code, said = next(iter(problem.recipients.values()), (0, b""))
        if 500 <= code < 600:
            raise AddressRefused(f"the mail server refuses the address: {code} {_words(said)}") from None
        raise
    except (ValueError, UnicodeError) as problem:  # Django's words for an address that no mail can carry
        raise AddressRefused(f"not an address that mail can be sent to: {problem}") from None


def _words(said: object) -> str:
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
