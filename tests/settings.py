"""The product's settings for tests in this process: the environment first, since settings read it once."""

import atexit
import os
import shutil
import tempfile

from tests import scratch

scratch.settle()
os.environ["DATABASE_URL"] = "postgresql://set-by-the-fixture@localhost/none"
os.environ["AGENTOPS_DATA"] = tempfile.mkdtemp(prefix="agentops-test-data-")
atexit.register(shutil.rmtree, os.environ["AGENTOPS_DATA"], ignore_errors=True)
os.environ["SECRET_KEY"] = "only-for-tests-and-known-to-everybody"
os.environ["BILLING_URL"] = "http://127.0.0.1:9"  # the discard port: a stray call fails at once
os.environ["HELPDESK_URL"] = "http://127.0.0.1:9/helpdesk/v1"
os.environ["BILLING_API_KEY"] = "sk_test_sandbox"
os.environ["BILLING_WEBHOOK_SECRET"] = "whsec_test"
os.environ["HELPDESK_TOKEN"] = "test-token"
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"  # Playwright's sync API keeps a loop in this thread

from agentops.settings import *  # noqa: E402, F403  # the environment above has to come first

STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # noqa: F405  # from the star import: whitenoise looks for it
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
CHANNEL_LAYERS = {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
