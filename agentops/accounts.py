"""Accounts are made by an administrator or by single sign-on, never by signing up."""

from typing import Any, ClassVar, NoReturn

from allauth.account.adapter import DefaultAccountAdapter
from django.http import Http404, HttpRequest


class ClosedSignup(DefaultAccountAdapter):  # type: ignore[misc]  # allauth ships no types
    error_messages: ClassVar[dict[str, Any]] = {
        **DefaultAccountAdapter.error_messages,
        "username_password_mismatch": "The user name or the password is wrong. Type both again.",
        "incorrect_password": "The password is wrong. Type it again.",
        "too_many_login_attempts": "Too many attempts to sign in failed. Wait a while, then try again.",
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        return False


def closed(request: HttpRequest) -> NoReturn:
    """Not found: stands before the pages of allauth by which people would do what an administrator does."""
    raise Http404
