"""CEL without its command line, which would bring a terminal's toolkit into every process and take longer than CEL."""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

sys.modules.setdefault("cel.cli", ModuleType("cel.cli"))
cel: Any = import_module("cel")
