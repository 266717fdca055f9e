"""The numbers of the advisory locks that have one of their own. Any numbers, but each once: two locks of one number are
one lock, which then stands at two places in the order of locks. Pure."""

RELAY = 7_305_511_223  # held by the relay at work, one for each database
FREEZES = RELAY + 1  # between freezing and sending; also in the function `approvals_freezes_in_force`
CIRCLES = RELAY + 2  # whoever begins to wait for a run looks for a circle alone
