"""Mail without a mail server: a line of the log for each, with its link. `EMAIL_URL=file:/folder` keeps whole mails."""

import sys
from collections.abc import Sequence

from django.conf import settings
from django.core.mail import EmailMessage
from django.core.mail.backends.base import BaseEmailBackend


class LogLines(BaseEmailBackend):
    """Writes `mail to somebody@example.com: what it is about, http://…` to standard output."""

    def send_messages(self, email_messages: Sequence[EmailMessage]) -> int:
        """How many were written. Raises what a mail server's sender raises for a header of more than one line."""
        for message in email_messages:
            message.message()  # a mail that could not be sent is not one that was
            words = f"mail to {', '.join(message.recipients())}: {message.subject}{_link(str(message.body))}"
            line = "".join(character for character in words if character.isprintable())
            sys.stdout.write(f"{line}\n")  # in one piece, as several threads send
            sys.stdout.flush()
        return len(email_messages)


def _link(body: str) -> str:
    """The first address of ours that stands on a line of its own, as no recorded value does; empty if there is none."""
    ours = (line for line in body.splitlines() if line.startswith(f"{settings.PUBLIC_URL}/"))
    return ", " + address if (address := next(ours, "")) else ""
