"""Refusals of the runner API as one error type: code, status, message, next try.

Raised by the endpoints and checks of this package, turned into an answer by `server`, nowhere else.
"""

import json
from typing import Final

from upgraderun_protocol.limits import ERROR_BODY_BYTES_MAX
from upgraderun_protocol.messages import STATUS_OF, ErrorCode

MESSAGE_MAX: Final = 1024
assert MESSAGE_MAX * 3 < ERROR_BODY_BYTES_MAX


class ApiError(Exception):
    """A refused call. `retry_after` in whole seconds, where waiting helps."""

    def __init__(self, code: ErrorCode, message: str, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.retry_after = retry_after

    @property
    def status(self) -> int:
        """HTTP status that belongs to the code."""
        return STATUS_OF[self.code]

    def body(self, message: str) -> bytes:
        """Write the error body with a message that was redacted: at most 4 KiB."""
        error: dict[str, object] = {
            "code": self.code.value,
            "message": message[:MESSAGE_MAX],
            "details": {},
        }
        return json.dumps({"error": error}).encode("ascii", "backslashreplace")
