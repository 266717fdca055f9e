"""One module a state: what a worker does there, in one durable commit, alone or with the step before."""
