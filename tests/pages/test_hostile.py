"""Text from outside is data: in every field that can carry it, on every page, and never in place of the true amount."""

from html.parser import HTMLParser

import pytest
from django.test import Client

from tests.pages import world

pytestmark = pytest.mark.usefixtures("db")

SCRIPT = "</td></dd><script>document.title='taken'</script><img src=x onerror=alert(1)>"
FALSE_LINE = "Credit\nAmount: $1.00 USD\r\nAmount: 1.00"
LONG = "W" * 50_000 + "-the-end"


class Reader(HTMLParser):
    """The page as a browser's parser sees it: its elements, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.text.append("\n" if tag == "br" else "")
        self.handlers += [name for name, _ in attrs if name.startswith("on") or name == "style"]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    return reader


@pytest.mark.parametrize("text", [SCRIPT, FALSE_LINE, LONG], ids=["script", "false line", "long"])
@pytest.mark.parametrize("place", ["customer", "memo", "invoice", "rationale"])
def test_hostile_text_is_shown_in_full_and_does_nothing(place: str, text: str) -> None:
    maya = world.person("Maya Lindgren", "manager")
    ask = world.ask(world.Story(**{place: text}))
    browser = Client()
    browser.force_login(maya)
    clean = read(browser.get(f"/approvals/{world.ask(world.Story()).pk}/").text)
    for path in ("/approvals/", f"/approvals/{ask.pk}/", "/approvals/?tab=others", "/overview/"):
        answer = browser.get(path)
        assert answer.status_code == 200
        page = read(answer.text)
        assert page.tags.count("script") <= clean.tags.count("script") + 1 and "img" not in page.tags
        assert page.handlers == []
    page = read(browser.get(f"/approvals/{ask.pk}/").text)
    whole = "".join(page.text)
    shown = " ".join(text.split())
    # a line break in a one-line value is drawn as ⏎
    assert shown in " ".join(whole.replace("⏎", " ").split()), "what is bound, or said, is never cut"
    assert whole.count("$1,200.00") >= 3, "the true amount stands in the title, in the rows and in the bar"


def test_an_unknown_tool_with_a_hostile_name_is_said_to_be_unknown() -> None:
    maya = world.person("Maya Lindgren", "manager")
    ask = world.ask(world.Story(tool="<b>billing</b>.pay"))
    browser = Client()
    browser.force_login(maya)
    page = browser.get(f"/approvals/{ask.pk}/")
    assert page.status_code == 200 and "<b>billing</b>" not in page.text
    assert "is not installed any more" in page.text and "$1,200.00" in page.text


@pytest.mark.parametrize(
    ("minor", "currency", "display"),
    [(500_000, "JPY", "¥500,000"), (2_000_000, "KRW", "₩2,000,000"), (1_234_567, "KWD", "KWD 1,234.567"),
     (1, "BHD", "BHD 0.001"), (150_000, "EUR", "€1,500.00"), (99_999_999_999_999, "USD", "$999,999,999,999.99")],
)  # fmt: skip
def test_amounts_of_every_exponent_are_exact(minor: int, currency: str, display: str) -> None:
    maya = world.person("Maya Lindgren", "manager")
    amount = world.Money(minor, currency)
    story = world.Story(amount=amount)
    ask = world.ask(story)
    browser = Client()
    browser.force_login(maya)
    for path in ("/approvals/", f"/approvals/{ask.pk}/"):
        text = browser.get(path).text.replace("\xa0", " ")
        assert display in text and f'value="{amount.plain()}"' in text
