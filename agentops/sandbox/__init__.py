"""A stand-in for the outside world: billing in Stripe's shape and a small help desk, in a process of its own.

It is driven over HTTP only, keeps its own storage, and records every real effect in an append-only ledger that tests,
demonstrations and evaluations use as the judge. Nothing in here may import Django or any other part of the product:
a judge that shares code with what it judges shares its mistakes. Run it with ``python -m agentops.sandbox``.
"""
