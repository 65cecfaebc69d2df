"""Guards of the record: who may write it, on what reading, when, and how much.

Callers: `guardlib.table`.
"""

from typing import Final

from guardlib.removal import Edit, Guard, Removal, tests_of

_PROTOCOL: Final = "protocol/src/upgraderun_protocol"
_OPERATOR: Final = "operator/src/upgraderun_operator"
_RUNNER: Final = "runner-image/src/upgraderun_runner"

GUARDS: Final = (
    Guard(
        "compare-and-set append",
        "reliability.md §2",
        (
            Removal(
                "a PUT names whatever version stands there now: the last writer wins",
                Edit(
                    f"{_OPERATOR}/adapters/kubernetes.py",
                    '        path = resource.path(metadata.get("namespace"), metadata["name"])\n        path += f"/{subresource}"',
                    '        path = resource.path(metadata.get("namespace"), metadata["name"])\n        live = await self.get(resource, metadata.get("namespace"), metadata["name"])\n        if isinstance(live, Ok):\n            version = live.value["metadata"]["resourceVersion"]\n            body = {**body, "metadata": {**metadata, "resourceVersion": version}}\n        path += f"/{subresource}"',
                ),
                tests_of(
                    "tests/api/journal/test_writer.py",
                    "TestUnknown::test_a_conflict_never_sends_the_same_body_again",
                    "TestUnknown::test_guards_are_evaluated_again_on_what_was_read",
                ),
            ),
        ),
    ),
)
