"""A small help desk: tickets with versions, comments, reply drafts, incidents, accounts and plans."""
