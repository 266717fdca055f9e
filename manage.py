#!/usr/bin/env python
"""Django's command line for agentops."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")
    from django.core.exceptions import ImproperlyConfigured

    try:
        from django.core.management import execute_from_command_line
    except ModuleNotFoundError:
        hint = "Django is not installed for this Python: use .venv/bin/python manage.py ... (`make run` makes it)"
        raise SystemExit(hint) from None

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as problem:  # its words name the setting; where it was read helps nobody
        sys.exit(f"{problem}")


if __name__ == "__main__":
    main()
