from importlib import import_module

from django.apps import AppConfig


class Config(AppConfig):
    name = "agentops.bench"
    label = "bench"

    def ready(self) -> None:
        """Only these processes know the plain workflow and its tool."""
        import_module("agentops.bench.plain").register()
