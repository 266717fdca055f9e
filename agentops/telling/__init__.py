"""Telling people and other systems: composing mail, sending it, calling webhooks, and the process that does so."""
