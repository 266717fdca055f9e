from importlib import import_module
from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def make_groups(**_: Any) -> None:
    """Every installation has the three groups: people are put into them, policies name them."""
    import_module("agentops.permissions").ensure_groups()


class Config(AppConfig):
    name = "agentops"
    label = "agentops"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """The checks register themselves."""
        import_module("agentops.checks")
        import_module("agentops.checks_live")
        post_migrate.connect(make_groups, sender=self)  # this app is migrated last, so every permission is there
