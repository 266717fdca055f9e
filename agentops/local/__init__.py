"""The whole system on one machine: embedded PostgreSQL and Valkey, and a supervisor for our own processes.

Nothing in here imports Django: it has to run before the settings can be read.
"""
