"""In real Chromium: setting up a second factor, in either theme."""

import pytest
from playwright.sync_api import expect

from tests.pages import world
from tests.pages.conftest import Visitor

pytestmark = [pytest.mark.usefixtures("db"), pytest.mark.browser]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_an_authenticator_app_can_be_set_up_from_the_page(visitor: Visitor, theme: str) -> None:
    world.person("Maya Lindgren", "manager")
    visitor.sign_in("maya")
    visitor.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page = visitor.goto("/accounts/2fa/totp/activate/")
    page.get_by_label("Password").fill(world.PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("heading")).to_have_text("Activate authenticator app")
    picture = page.locator("img.qr")
    ground = picture.evaluate("image => getComputedStyle(image).backgroundColor")
    assert ground == "rgb(255, 255, 255)" and picture.evaluate("image => image.naturalWidth") > 100
    secret = page.get_by_label("Authenticator secret")
    expect(secret).to_be_enabled()
    assert secret.evaluate("field => field.readOnly && field.scrollWidth <= field.clientWidth")
    visitor.assert_sound()
