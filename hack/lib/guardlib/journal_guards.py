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
    Guard(
        "quorum read before an effect",
        "reliability.md §2",
        (
            Removal(
                "what was read when the pass began is good enough for a grant",
                Edit(
                    f"{_OPERATOR}/reconcile.py",
                    'if isinstance(what, Append) and what.name == "grant":',
                    "if False:",
                ),
                tests_of(
                    "tests/api/reconcile/test_wishes.py",
                    "TestApproval::test_that_is_taken_back_inside_the_pass_lets_nothing_go",
                    "TestApproval::test_under_a_policy_that_forbids_inside_the_pass_lets_nothing_go",
                ),
            ),
            Removal(
                "what a long pass read at its beginning stays good",
                Edit(
                    f"{_OPERATOR}/reconcile.py",
                    "if kept is not None and started - kept.since > limits.KEPT_SECONDS_MAX:",
                    "if False:",
                ),
                tests_of("tests/api/reconcile/test_passes.py", "test_what_is_kept_grows_old"),
            ),
            Removal(
                "the API server may answer a read from its cache",
                Edit(
                    f"{_OPERATOR}/adapters/kubernetes.py",
                    '"GET", resource.path(namespace, name), timeout_seconds=timeout_seconds',
                    '"GET", resource.path(namespace, name) + "?resourceVersion=0"',
                ),
                tests_of(
                    "tests/api/journal/test_client.py",
                    "TestQuorum::test_an_object_isnt_read_from_a_servers_cache",
                ),
            ),
            Removal(
                "the API server may answer a list from its cache",
                Edit(
                    f"{_OPERATOR}/adapters/kubernetes.py",
                    'query = {"limit": str(LIST_CHUNK)}',
                    'query = {"limit": str(LIST_CHUNK), "resourceVersion": "0"}',
                ),
                tests_of(
                    "tests/api/journal/test_client.py",
                    "TestQuorum::test_a_list_isnt_read_from_a_servers_cache",
                ),
            ),
        ),
    ),
    Guard(
        "epoch fence",
        "reliability.md §2",
        (
            Removal(
                "entries of an older writer are taken under the newest epoch",
                Edit(
                    f"{_OPERATOR}/journal/planning.py",
                    "    if epoch < view.state.epoch:\n        return EpochFell(epoch, view)\n",
                    "    epoch = max(epoch, view.state.epoch)\n",
                ),
                tests_of(
                    "tests/unit/journal/test_planning.py",
                    "TestAppend::test_an_older_epoch_is_refused_even_for_a_replay",
                )
                + tests_of(
                    "tests/api/journal/test_writer.py", "TestRefused::test_an_older_epoch_is_fenced"
                ),
            ),
            Removal(
                "a call may name any epoch",
                Edit(
                    f"{_OPERATOR}/api/access.py",
                    "if caller.epoch is None or int(text) != caller.epoch:",
                    "if caller.epoch is None:",
                ),
                tests_of(
                    "tests/api/runner_api/test_identity.py",
                    "TestRoleEpochRate::test_an_older_epoch_is_stale",
                ),
            ),
            Removal(
                "a leader that was replaced writes on",
                Edit(
                    f"{_OPERATOR}/journal/guards.py",
                    "return None if leader is None or leader <= mine else",
                    "return None if True else",
                ),
                tests_of("tests/unit/journal/test_guards.py", "test_a_guard_fails_on_anything_else")
                + tests_of(
                    "tests/api/journal/test_writer.py", "TestRefused::test_a_later_leader_fences"
                ),
            ),
            Removal(
                "a leader that was replaced acts on",
                Edit(
                    f"{_OPERATOR}/reconcile.py",
                    "case RunView() if (view.facts.leader_epoch or epoch) > epoch:",
                    "case RunView() if False:",
                ),
                tests_of(
                    "tests/api/reconcile/test_faults.py",
                    "TestLeaders::test_a_leader_lease_made_anew_gets_above_what_runs_remember",
                ),
            ),
        ),
    ),
    Guard(
        "stamp compare-and-set",
        "runner-protocol.md §5",
        (
            Removal(
                "a loss is judged whatever stamp stands there by then",
                Edit(
                    f"{_OPERATOR}/decide/loss.py",
                    "(AttemptIs(planned.tag, planned.pod_uid), StampIs(planned.tag, _stamp(seen)))",
                    "(AttemptIs(planned.tag, planned.pod_uid),)",
                ),
                tests_of("tests/unit/decide/test_loss.py", "test_the_second_look_ends_the_attempt")
                + tests_of(
                    "tests/api/reconcile/test_faults.py",
                    "TestLoss::test_whose_stamp_was_cleared_meanwhile_is_none",
                ),
            ),
            Removal(
                "any stamp is the one that was read",
                Edit(
                    f"{_OPERATOR}/journal/guards.py",
                    "pod.tag == tag and stamp == value",
                    "pod.tag == tag",
                ),
                tests_of("tests/unit/journal/test_guards.py", "test_a_guard_fails_on_anything_else")
                + tests_of(
                    "tests/api/reconcile/test_faults.py",
                    "TestLoss::test_whose_stamp_was_cleared_meanwhile_is_none",
                ),
            ),
        ),
    ),
    Guard(
        "second observation",
        "runner-protocol.md §5",
        (
            Removal(
                "one look at a dead pod ends its part",
                Edit(
                    f"{_OPERATOR}/decide/loss.py",
                    "        pod_is_seen_dead_for_the_first_time,\n        window_is_open,\n",
                    "",
                ),
                tests_of(
                    "tests/unit/decide/test_loss.py",
                    "test_the_first_look_only_stamps",
                    "test_inside_the_window_nothing_happens_and_the_run_wakes_at_its_end",
                )
                + tests_of(
                    "tests/api/reconcile/test_faults.py",
                    "TestLoss::test_resumes_with_the_next_attempt",
                ),
            ),
            Removal(
                "the second look may come at once",
                Edit(
                    f"{_OPERATOR}/decide/loss.py",
                    "    if age is None or age >= grace:\n",
                    "    if age is not None:\n",
                ),
                tests_of(
                    "tests/unit/decide/test_loss.py",
                    "test_inside_the_window_nothing_happens_and_the_run_wakes_at_its_end",
                ),
            ),
            Removal(
                "one look tells that a pushed branch was removed",
                Edit(
                    f"{_RUNNER}/forge/tables.py",
                    "    if not seen.confirmed:\n        return ConfirmAbsence()\n",
                    "",
                ),
                tests_of(
                    "tests/unit/forge/test_tables.py",
                    "TestBranch::test_recorded_branch_gone_needs_two_looks",
                )
                + tests_of(
                    "tests/git/test_publication.py",
                    "TestDeclined::test_removed_branch_needs_two_looks_three_minutes_apart",
                ),
            ),
        ),
    ),
    Guard(
        "journal cap",
        "reliability.md §2",
        (
            Removal(
                "a full status takes another entry",
                Edit(
                    f"{_OPERATOR}/journal/planning.py",
                    "    if too_big and segment is None:\n",
                    "    if False:\n",
                ),
                tests_of(
                    "tests/unit/journal/test_planning.py",
                    "TestBounds::test_a_full_status_takes_no_intent",
                )
                + tests_of(
                    "tests/api/runner_api/test_work.py", "TestJournal::test_a_full_journal_says_so"
                ),
            ),
            Removal(
                "an entry may have any size",
                Edit(
                    f"{_PROTOCOL}/entries.py",
                    "    if entry.size > ENTRY_BYTES_MAX:\n",
                    "    if False:\n",
                ),
                tests_of(
                    "tests/unit/journal/test_planning.py",
                    "TestBounds::test_an_entry_that_is_too_long_is_refused",
                ),
            ),
        ),
    ),
)
