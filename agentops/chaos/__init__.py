"""Runs that survive anything, shown: a storm of faults, kills and freezes over the whole stack, judged by the sandbox's
ledger. ``python -m agentops.chaos`` (``make chaos``); docs/chaos.md tells what it prints.

``scale``, ``schedule`` and ``judge`` are pure; nothing in here is part of the running product.
"""
