"""The admin site manages accounts and is no second way to anything else."""

import itertools
import re
from typing import Any

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client

from agentops.permissions import ensure_groups
from approvals import rights
from runs.services import principals

pytestmark = pytest.mark.usefixtures("db")
ADD = {"username": "nina", "usable_password": "true", "password1": "a-long-demo-word", "password2": "a-long-demo-word"}


@pytest.fixture
def root() -> Client:
    browser = Client(raise_request_exception=False)
    browser.force_login(User.objects.create_superuser("root", password="a-long-demo-word"))
    return browser


def test_only_people_and_groups_are_registered() -> None:
    assert {model._meta.label for model in admin.site._registry} == {"auth.User", "auth.Group"}


def test_no_page_of_another_model_exists(root: Client) -> None:
    others = [model._meta for model in apps.get_models() if model not in (User, Group)]
    assert len(others) > 20
    for meta, page in zip(others, itertools.cycle(("", "add/", "1/change/", "1/delete/"))):
        answer = root.get(f"/admin/{meta.app_label}/{meta.model_name}/{page}")
        assert answer.status_code == 404, meta.label


def change(user: User, **fields: Any) -> dict[str, Any]:
    """The posted form of a user's page, with the values it shows."""
    joined = user.date_joined
    return {
        "username": user.username, "first_name": "", "last_name": "", "email": "", "is_active": "on",
        "date_joined_0": joined.strftime("%Y-%m-%d"), "date_joined_1": joined.strftime("%H:%M:%S"),
        "groups": [group.pk for group in user.groups.all()], **fields,
    }  # fmt: skip


def test_the_life_of_an_account_with_the_applications_rights(root: Client) -> None:
    assert connection.settings_dict["USER"] == "agentops_app"
    groups = ensure_groups()
    assert root.post("/admin/auth/user/add/", ADD).status_code == 302
    nina = User.objects.get(username="nina")
    page = f"/admin/auth/user/{nina.pk}/change/"
    assert root.post(page, change(nina, groups=[groups["manager"].pk])).status_code == 302
    assert rights.may_vote_at_all(user=nina)

    assert root.post(page, change(nina, groups=[])).status_code == 302
    assert not rights.may_vote_at_all(user=nina)
    password = {"password1": "another-long-word", "password2": "another-long-word", "usable_password": "true"}
    assert root.post(f"/admin/auth/user/{nina.pk}/password/", password).status_code == 302
    nina.refresh_from_db()
    assert nina.check_password("another-long-word")
    assert root.get(f"/admin/auth/user/{nina.pk}/history/").status_code == 200
    fields = change(nina)
    del fields["is_active"]
    assert root.post(page, fields).status_code == 302
    nina.refresh_from_db()
    assert not nina.is_active


def test_who_has_acted_cannot_be_deleted(root: Client) -> None:
    nina = User.objects.create_user("nina")
    principals.of_user(user=nina)
    answer = root.post(f"/admin/auth/user/{nina.pk}/delete/", {"post": "yes"})
    assert answer.status_code == 200 and "annot delete" in answer.text
    root.post("/admin/auth/user/", {"action": "delete_selected", "_selected_action": [nina.pk], "post": "yes"})
    assert User.objects.filter(pk=nina.pk).exists()


def test_signing_in_happens_on_the_products_own_page() -> None:
    """With a password alone nobody gets past the second factor by way of the admin site."""
    browser = Client()
    User.objects.create_superuser("root", password="a-long-demo-word")
    answer = browser.get("/admin/", follow=True)
    assert answer.redirect_chain[-1][0].startswith("/accounts/login/?next=")
    browser.post("/admin/login/", {"username": "root", "password": "a-long-demo-word"})
    assert "_auth_user_id" not in browser.session


def test_people_without_the_right_do_not_get_in() -> None:
    groups = ensure_groups()
    browser = Client()
    for name, group in groups.items():
        user = User.objects.create_user(f"a-{name}")
        user.groups.add(group)
        browser.force_login(user)
        for page in ("/admin/", "/admin/auth/user/", "/admin/auth/user/add/"):
            assert browser.get(page, follow=True).status_code == 403


def test_the_pages_have_nothing_that_the_content_policy_blocks(root: Client) -> None:
    for page in ("", "auth/user/", "auth/user/add/", f"auth/user/{User.objects.get().pk}/change/", "auth/group/add/"):
        answer = root.get(f"/admin/{page}")
        assert answer.status_code == 200
        assert not re.search(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>|\sstyle=|\son\w+=", answer.text)
