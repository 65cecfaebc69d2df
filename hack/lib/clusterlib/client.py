"""A few lines of Kubernetes client over the standard library: one request, and readiness.

Callers: `apiserver`, `local`, `provisioner`. For anything richer use kubectl.
"""

import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from clusterlib.certificates import Certificate

REQUEST_SECONDS = 10.0


class ApiStatusError(Exception):
    """The API server answered, and said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{status}: {message}")
        self.status = status


@dataclass(frozen=True, slots=True)
class Client:
    """One server and one identity; a connection per request."""

    server: str
    authority: Path
    identity: Certificate

    def connect(self, seconds: float | None = REQUEST_SECONDS) -> http.client.HTTPSConnection:
        """A connection for whoever wants to stream."""
        context = ssl.create_default_context(cafile=str(self.authority))
        context.load_cert_chain(self.identity.crt, self.identity.key)
        return http.client.HTTPSConnection(
            urlsplit(self.server).netloc, timeout=seconds, context=context
        )

    def request(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> Any:
        """Send one request; give back the decoded answer. Raises ApiStatusError and OSError."""
        connection = self.connect()
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, path, data, {"Content-Type": content_type})
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= http.client.BAD_REQUEST:
            raise ApiStatusError(answer.status, text[:500])
        return json.loads(text) if text.startswith("{") else text

    def is_ready(self) -> bool:
        """Whether the API server says that it is ready to serve."""
        try:
            return bool(self.request("GET", "/readyz") == "ok")
        except (ApiStatusError, OSError, http.client.HTTPException):
            return False
