from importlib import import_module

from django.apps import AppConfig


class Config(AppConfig):
    name = "agentops"
    label = "agentops"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """The checks register themselves."""
        import_module("agentops.checks")
        import_module("agentops.checks_live")
