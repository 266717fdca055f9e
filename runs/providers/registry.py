"""Which model is asked: the setting AGENT_MODEL."""

from django.conf import settings

from runs.providers.base import Provider
from runs.providers.pydantic_ai_provider import PydanticAiProvider
from runs.providers.rules import RulesProvider
from runs.providers.scripted import scripted_model


class UnknownProvider(ValueError):
    """AGENT_MODEL names nothing; the message says what it may be."""


def provider() -> Provider:
    """`rules` (no model), `vendor:model` through pydantic-ai, or `test:{…}` for a fixed answer. Raises UnknownProvider
    and BadScript; a vendor's missing SDK or key shows when it is asked, as ProviderDown."""
    name = settings.AGENT_MODEL
    if name == "rules":
        return RulesProvider()
    vendor, colon, rest = name.partition(":")
    if not (vendor and colon and rest):
        raise UnknownProvider(f"AGENT_MODEL is {name!r}; give rules, openai:…, anthropic:… or test:{{…}}")
    return PydanticAiProvider(scripted_model(rest) if vendor == "test" else name)
