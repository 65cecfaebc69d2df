"""Every number that bounds the talk with the forge (upgrade-run.md §12, reliability.md §3)."""

from typing import Final

WRITE_INTERVAL_SECONDS: Final = 1.0
LOOK_DELAYS_SECONDS: Final = (0, 2, 10, 30, 180)
"""When to look again after a create that said 422 or nothing, and for a ref that lags."""
ABSENCE_SECONDS: Final = 180
"""How far apart two observations of an absent branch must lie before it counts as removed."""
HTTP_TIMEOUT_SECONDS: Final = 30
ANSWER_BYTES_MAX: Final = 4 * 1024 * 1024
PULL_REQUESTS_PER_PAGE: Final = 100
DENIAL_CHARACTERS_MAX: Final = 512
STEPS_MAX: Final = 8
"""Decisions in one call of `ensure_*`; more means that the remote doesn't hold still."""
WARNINGS_MAX: Final = 4
EVIDENCE_CHARACTERS_MAX: Final = 200
ENTRY_TEXT_MAX: Final = 120
"""Characters of one text in an entry's data: two of them fit into its 512 bytes."""
PULL_REQUEST_TEXT_BYTES: Final = 220
"""What the entry of a pull request has left for its address and its warnings together."""

PROPOSAL_BODY_MAX: Final = 62_000
LIST_ITEMS_MAX: Final = 64
ITEM_CHARACTERS_MAX: Final = 300
