"""Decides and connects: settings, engine, workflows, composite pages, api, tasks, relay, local stack, sandbox."""
