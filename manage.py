#!/usr/bin/env python
"""Django's command line for agentops."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "agentops.settings")
    from django.core.exceptions import ImproperlyConfigured
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as problem:  # its words name the setting; where it was read helps nobody
        sys.exit(f"{problem}")


if __name__ == "__main__":
    main()
