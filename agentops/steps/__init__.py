"""One module a state: what a worker does there, one durable commit a step."""
