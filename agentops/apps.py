from django.apps import AppConfig


class Config(AppConfig):
    name = "agentops"
    label = "agentops"
    default_auto_field = "django.db.models.BigAutoField"
