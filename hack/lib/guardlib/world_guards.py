"""Guards of what stands outside: whose an object is, what a push may do, who works on a repository.

Callers: `guardlib.table`.
"""

from typing import Final

from guardlib.removal import Edit, Guard, Removal, tests_of

_OPERATOR: Final = "operator/src/upgraderun_operator"
_RUNNER: Final = "runner-image/src/upgraderun_runner"

GUARDS: Final = (
    Guard(
        "owner-UID match",
        "reliability.md §2",
        (
            Removal(
                "a pod is ours by its name",
                Edit(
                    f"{_OPERATOR}/decide/starting.py",
                    "pod is None or pod.owner_uid == seen.view.uid:",
                    "pod is None or pod:",
                ),
                tests_of(
                    "tests/unit/decide/test_starting.py",
                    "test_a_strangers_pod_is_a_conflict_and_stays",
                    "test_a_conflict_is_one_append_of_entry_and_outcome",
                ),
            ),
            Removal(
                "a volume or a Lease is ours by its name",
                Edit(
                    f"{_OPERATOR}/decide/starting.py",
                    "if child.owner_uid == seen.view.uid:",
                    "if child:",
                ),
                tests_of(
                    "tests/unit/decide/test_starting.py",
                    "TestVolume::test_of_a_stranger_is_a_conflict",
                    "TestLease::test_of_a_stranger_is_a_conflict",
                ),
            ),
            Removal(
                "the pod of that name is the one that was recorded",
                Edit(
                    f"{_OPERATOR}/decide/sights.py",
                    "    if pod.uid != uid:\n        return Sight.FOREIGN\n",
                    "",
                ),
                tests_of(
                    "tests/unit/decide/test_loss.py",
                    "TestConflicts::test_another_pod_under_our_name",
                    "TestSight::test_of_every_kind",
                ),
            ),
            Removal(
                "a volume is taken away by its name",
                Edit(
                    f"{_OPERATOR}/decide/ending.py",
                    "if claim.owner_uid != seen.view.uid or claim.deleted_at is not None:",
                    "if claim.deleted_at is not None:",
                ),
                tests_of(
                    "tests/unit/decide/test_ending.py",
                    "TestConflict::test_leaves_a_strangers_volume_alone",
                ),
            ),
            Removal(
                "a run Lease is taken away by its name",
                Edit(
                    f"{_OPERATOR}/decide/tidying.py",
                    "lease is None or lease.owner_uid != seen.view.uid:",
                    "lease is None:",
                ),
                tests_of(
                    "tests/unit/decide/test_stopping.py",
                    "TestSuspend::test_leaves_a_strangers_lease_alone",
                ),
            ),
            Removal(
                "the pod of an ended attempt is taken away by its name",
                Edit(
                    f"{_OPERATOR}/observe/readers.py",
                    "if not isinstance(pod, PodView) or pod.owner_uid != seen.view.uid:",
                    "if not isinstance(pod, PodView):",
                ),
                tests_of(
                    "tests/api/reconcile/test_faults.py",
                    "test_a_strangers_pod_under_a_name_that_was_never_recorded_stays",
                ),
            ),
            Removal(
                "a publisher's pod is stopped by its name when the run is cancelled",
                Edit(
                    f"{_OPERATOR}/decide/stopping.py",
                    "if pod is None or pod.owner_uid != seen.view.uid:",
                    "if pod is None:",
                ),
                tests_of(
                    "tests/unit/decide/test_stopping.py",
                    "TestCancelWhilePublishing::test_ends_the_delivery_when_its_pod_is_gone",
                ),
            ),
            Removal(
                "a publisher's pod is stopped by its name when the run is deleted",
                Edit(
                    f"{_OPERATOR}/decide/deleting.py",
                    "(pod.owner_uid != seen.view.uid or pod.uid != writer.pod_uid)",
                    "pod.uid != writer.pod_uid",
                ),
                tests_of(
                    "tests/unit/decide/test_deleting.py",
                    "TestPublisher::test_that_is_gone_lets_the_rest_go_on",
                ),
            ),
            Removal(
                "a report is ours by its name",
                Edit(
                    f"{_OPERATOR}/decide/asking.py",
                    "if report is not None and report.owner_uid != seen.view.uid:",
                    "if False:",
                ),
                tests_of(
                    "tests/unit/decide/test_approval.py",
                    "TestAsking::test_is_impossible_beside_a_strangers_report",
                ),
            ),
            Removal(
                "a deletion names no UID",
                Edit(
                    f"{_OPERATOR}/adapters/kubernetes.py",
                    '"preconditions": {"uid": uid},',
                    '"preconditions": {},',
                ),
                tests_of(
                    "tests/api/journal/test_client.py", "TestAnswers::test_create_get_put_delete"
                ),
            ),
        ),
    ),
    Guard(
        "approval check at the push intent",
        "upgrade-run.md §11",
        (
            Removal(
                "the run is read again before a grant, its approvals aren't",
                Edit(
                    f"{_OPERATOR}/reconcile.py",
                    "approvals=NOT_READ, policy=NOT_READ",
                    "policy=NOT_READ",
                ),
                tests_of(
                    "tests/api/reconcile/test_wishes.py",
                    "TestApproval::test_that_is_taken_back_inside_the_pass_lets_nothing_go",
                ),
            ),
            Removal(
                "another push rests on the first grant alone",
                Edit(f"{_OPERATOR}/decide/publishing.py", "        approval_was_taken_back,\n", ""),
                tests_of(
                    "tests/unit/decide/test_publishing.py",
                    "TestDenied::test_stops_when_the_approval_was_taken_back",
                    "TestDenied::test_ends_when_somebody_rejects_meanwhile",
                ),
            ),
            Removal(
                "a push token is minted without a grant of that proposal",
                Edit(
                    f"{_OPERATOR}/api/tokens.py",
                    "if state.proposal is None or state.proposal.digest != digest:",
                    "if False:",
                ),
                tests_of(
                    "tests/api/runner_api/test_tokens.py",
                    "TestPushToken::test_another_proposal_was_not_granted",
                ),
            ),
            Removal(
                "a publisher's next intent rests on what stood when it came",
                Edit(
                    f"{_OPERATOR}/api/journal.py",
                    "(*_guards(call), *_publishes(drafts))",
                    "_guards(call)",
                ),
                tests_of(
                    "tests/api/runner_api/test_tokens.py",
                    "TestIntent::test_people_may_hold_it",
                    "TestIntent::test_another_commit_was_not_granted",
                ),
            ),
        ),
    ),
    Guard(
        "create-only push",
        "reliability.md §3",
        (
            Removal(
                "a push moves a branch forward that stands there already",
                Edit(
                    f"{_RUNNER}/forge/push.py",
                    '        f"--force-with-lease=refs/heads/{branch}:",\n',
                    "",
                ),
                tests_of(
                    "tests/unit/forge/test_push.py", "test_argv_creates_only_and_names_one_ref"
                )
                + tests_of(
                    "tests/git/test_publication.py",
                    "TestConflicts::test_stranger_is_quicker_than_our_push",
                ),
            ),
        ),
    ),
    Guard(
        "refusal of a foreign branch",
        "upgrade-run.md §13.5",
        (
            Removal(
                "a branch of our name is ours, whatever it holds",
                Edit(
                    f"{_RUNNER}/forge/tables.py",
                    "if seen.commit == ours.commit:",
                    "if seen.commit:",
                ),
                tests_of(
                    "tests/unit/forge/test_tables.py", "TestBranch::test_other_commit_is_a_conflict"
                )
                + tests_of("tests/git/test_publication.py", "TestConflicts::test_foreign_branch"),
            ),
            Removal(
                "a pull request is made from our branch, whatever it holds by then",
                Edit(
                    f"{_RUNNER}/forge/tables.py",
                    "    if branch == BranchAt(ours.commit):\n",
                    "    if isinstance(branch, BranchAt):\n",
                ),
                tests_of(
                    "tests/unit/forge/test_tables.py",
                    "TestPullRequest::test_none_and_branch_elsewhere_goes_back",
                )
                + tests_of(
                    "tests/git/test_publication.py",
                    "TestConflicts::test_no_pull_request_is_intended_for_a_branch_that_moved",
                ),
            ),
        ),
    ),
    Guard(
        "head check after create",
        "reliability.md §3",
        (
            Removal(
                "a pull request that we made is ours, whatever its head is",
                Edit(
                    f"{_RUNNER}/forge/tables.py",
                    'if pull.state == "merged" or pull.head_commit == ours.commit:',
                    "if pull.state:",
                ),
                tests_of(
                    "tests/unit/forge/test_tables.py",
                    "TestPullRequest::test_ours_with_another_head_is_a_conflict",
                )
                + tests_of(
                    "tests/git/test_publication.py",
                    "TestConflicts::test_foreign_push_within_the_create",
                ),
            ),
        ),
    ),
    Guard(
        "look-up before create",
        "upgrade-run.md §13.5",
        (
            Removal(
                "a pull request is created before anybody looked for one",
                Edit(
                    f"{_RUNNER}/forge/pull_request.py",
                    "    created = False\n    pulls = await _see(delivery)\n",
                    "    created = False\n    pulls: PullRequestsSeen = ()\n",
                ),
                tests_of(
                    "tests/git/test_publication.py",
                    "TestDeclined::test_closed_pull_request_is_never_recreated",
                ),
            ),
            Removal(
                "a branch is pushed before anybody looked for it",
                Edit(
                    f"{_RUNNER}/forge/branch.py",
                    "    pushed = False\n    seen = await see_branch(delivery)\n",
                    "    pushed = False\n    seen: BranchSeen = BranchAbsent()\n",
                ),
                tests_of("tests/git/test_publication.py", "TestConflicts::test_foreign_branch"),
            ),
            Removal(
                "after a create without an answer nobody looks",
                Edit(
                    f"{_RUNNER}/forge/pull_request.py",
                    "    pulls = await _look(delivery)\n",
                    "    pulls: PullRequestsSeen = ()\n",
                ),
                tests_of(
                    "tests/git/test_publication.py",
                    "TestLostAnswers::test_answer_of_the_create_is_lost",
                    "TestLostAnswers::test_422_of_a_lost_race_is_looked_up",
                ),
            ),
        ),
    ),
    Guard(
        "repository lease",
        "DESIGN §7",
        (
            Removal(
                "a repository is free, whoever holds it",
                Edit(
                    f"{_OPERATOR}/observe/repository.py",
                    "who = Holder.OTHER if lives else Holder.FREE",
                    "who = Holder.FREE",
                ),
                tests_of(
                    "tests/api/reconcile/test_wishes.py",
                    "TestBusy::test_the_second_waits_naming_the_first_and_then_goes_on",
                ),
            ),
            Removal(
                "a repository that another run holds is taken",
                Edit(
                    f"{_OPERATOR}/decide/admission.py",
                    "if lease is None or lease.holder is not Holder.OTHER:",
                    "if lease:",
                ),
                tests_of(
                    "tests/unit/decide/test_admission.py",
                    "TestRepository::test_that_is_busy_makes_the_run_wait_and_names_the_holder",
                )
                + tests_of(
                    "tests/unit/decide/test_approval.py", "TestGrant::test_needs_the_repository"
                ),
            ),
        ),
    ),
)
