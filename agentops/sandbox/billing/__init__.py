"""Billing in the shape of Stripe's API, as far as credits on invoices need it."""
