"""`make bench`: how fast runs go through real workers, each figure beside raw commits of the same minutes."""
