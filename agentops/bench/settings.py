"""The product's settings with the plain workflow added, for the processes of a benchmark only."""

from agentops.settings import *  # noqa: F403

INSTALLED_APPS = [*INSTALLED_APPS, "agentops.bench"]  # noqa: F405
