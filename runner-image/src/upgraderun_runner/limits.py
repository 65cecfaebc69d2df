"""The runner's own bounds; those that both sides share stand in `upgraderun_protocol.limits`.

Sources: upgrade-run.md §9.2, §9.5, runner-protocol.md §2. Sums that must fit are asserted here.
"""

from typing import Final

from upgraderun_protocol.limits import (
    ARTIFACT_BYTES_MAX,
    BUNDLE_BYTES_MAX,
    JSON_BODY_BYTES_MAX,
    KIB,
    MIB,
    RUN_LEASE_SECONDS,
    SUMMARY_MAX,
    TITLE_MAX,
)

# Transport (runner-protocol.md §2); seconds of one attempt
CONNECT_SECONDS: Final = 5
POOL_SECONDS: Final = 5
WRITE_SECONDS: Final = 30
READ_SECONDS: Final = 30
RESULT_READ_SECONDS: Final = 35
LARGE_UPLOAD_READ_SECONDS: Final = 120
LARGE_UPLOAD_BYTES: Final = MIB
ERROR_BODY_READ_MAX: Final = 16 * KIB
JSON_READ_MAX: Final = JSON_BODY_BYTES_MAX
BYTES_READ_MAX: Final = ARTIFACT_BYTES_MAX

ARTIFACT_KEPT_BYTES: Final = MIB

# Lease (runner-protocol.md §1.8)
LEASE_LAPSE_SECONDS: Final = RUN_LEASE_SECONDS
LEASE_RETRY_SECONDS: Final = 2

# Tools (upgrade-run.md §9.2)
READ_WINDOW_BYTES: Final = 20_000
READ_FILE_BYTES_MAX: Final = 256 * KIB
LIST_ENTRIES_MAX: Final = 1_000
SEARCH_HITS_MAX: Final = 200
SEARCH_HIT_BYTES: Final = 300
SEARCH_FILE_BYTES_MAX: Final = 256 * KIB
SEARCH_PATTERN_MAX: Final = 512
WRITE_CONTENT_MAX: Final = MIB
EDIT_TEXT_MAX: Final = 65_536
STRING_MAX: Final = 4_096
REASON_MAX: Final = 2_000
DETAILS_MAX: Final = 8_000
DIFF_PATCH_BYTES: Final = 200 * KIB
NEAREST_ENTRIES_MAX: Final = 60
STDERR_SHOWN_BYTES: Final = 8_000
DECISION_BYTES_MAX: Final = 2 * MIB
TOOL_READ_SECONDS: Final = 30
TOOL_MANIFEST_SECONDS: Final = 15 * 60
VALIDATION_SLACK_SECONDS: Final = 5 * 60

# Ends
TERMINATION_WRITE_BYTES: Final = 4_096
ACQUISITION_TEXT_MAX: Final = 2_000
SIGTERM_EXIT: Final = 143

assert BUNDLE_BYTES_MAX <= BYTES_READ_MAX
assert WRITE_CONTENT_MAX < DECISION_BYTES_MAX
assert TITLE_MAX + SUMMARY_MAX < DECISION_BYTES_MAX
assert RESULT_READ_SECONDS > READ_SECONDS
