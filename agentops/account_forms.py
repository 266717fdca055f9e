"""The forms of signing in and of one's own account: allauth's, with our words for what is wrong with a field.

The settings name each of them where allauth looks for its own.
"""

from typing import Any

from allauth.account import forms as account
from allauth.mfa.base import forms as second
from allauth.mfa.totp import forms as totp
from allauth.mfa.webauthn import forms as passkeys

from runs.forms import PlainWords
from runs.words import sentence_case


class OurLabels(PlainWords):
    """The library's labels as ours are written."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for field in self.fields.values():  # type: ignore[attr-defined]  # the form's, which stands behind this one
            field.label = sentence_case(str(field.label)) if field.label else field.label


def _ours(form: type) -> type:
    return type(form.__name__, (OurLabels, form), {"__module__": __name__})


class LoginForm(PlainWords, account.LoginForm):  # type: ignore[misc]  # allauth ships no types
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["login"].label = "User name"


ReauthenticateForm = _ours(account.ReauthenticateForm)
ChangePasswordForm = _ours(account.ChangePasswordForm)
SetPasswordForm = _ours(account.SetPasswordForm)
AuthenticateCodeForm = _ours(second.AuthenticateForm)
ReauthenticateCodeForm = _ours(second.ReauthenticateForm)
ActivateTOTPForm = _ours(totp.ActivateTOTPForm)
AddWebAuthnForm = _ours(passkeys.AddWebAuthnForm)
EditWebAuthnForm = _ours(passkeys.EditWebAuthnForm)
LoginWebAuthnForm = _ours(passkeys.LoginWebAuthnForm)
ReauthenticateWebAuthnForm = _ours(passkeys.ReauthenticateWebAuthnForm)
AuthenticateWebAuthnForm = _ours(passkeys.AuthenticateWebAuthnForm)
