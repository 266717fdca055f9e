"""``python -m agentops.sandbox --port 9000 --data DIR``: run the sandbox alone."""

import os
import socket
import sys

import uvicorn

from agentops.sandbox import app, config, network


def _listen(*, host: str, port: int) -> socket.socket:
    """Bind before the application is built, so that a taken port is one clear message and port 0 is known."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        sys.exit(
            f"sandbox: cannot listen on {host}:{port}: {error.strerror or error}. Choose another --host or --port."
        )
    listener.listen(128)
    return listener


def main() -> None:
    """Run until SIGTERM or SIGINT."""
    chosen = config.parse(argv=sys.argv[1:], environ=os.environ)
    listener = _listen(host=chosen.host, port=chosen.port)
    host = f"[{chosen.host}]" if ":" in chosen.host else chosen.host

    def ready() -> None:
        print(f"sandbox ready on http://{host}:{listener.getsockname()[1]}", flush=True)

    server = uvicorn.Server(
        uvicorn.Config(
            app.build(config=chosen, on_ready=ready),
            http=network.TrackedProtocol,
            ws="none",
            # The standard loop's sockets take SO_LINGER, which a reset needs.
            loop="asyncio",
            # A forwarded address would hide the peer by which a connection is found.
            proxy_headers=False,
            # A short limit closes idle connections under callers that reuse them: a fault nobody asked for.
            timeout_keep_alive=120,
            # Held connections must not keep the process from ending.
            timeout_graceful_shutdown=1,
            log_level="warning",
            access_log=False,
        )
    )
    try:
        server.run(sockets=[listener])
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
