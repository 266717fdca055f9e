"""Speaking to the sandbox's own side (`/_sandbox/…`): for the demo world and the faults page, never for the product."""

from typing import Any

import requests


class SandboxDown(Exception):
    """The sandbox did not answer, or not as it should; the message says what was asked."""


class SandboxClient:
    def __init__(self, *, url: str, seconds: float = 5.0) -> None:
        self.url = url.rstrip("/")
        self.seconds = seconds

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        try:
            answer = requests.request(method, f"{self.url}/_sandbox/{path}", timeout=self.seconds, **more)
            answer.raise_for_status()
            return answer.json()
        except (requests.RequestException, ValueError, RecursionError) as problem:
            raise SandboxDown(f"the sandbox did not answer {method} {path}: {problem}") from problem

    def get(self, path: str, **query: Any) -> Any:
        return self._ask("GET", path, params=query)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        return self._ask("POST", path, json=body)

    def delete(self, path: str) -> Any:
        return self._ask("DELETE", path)
