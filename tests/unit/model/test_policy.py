"""A run held against its policy: what is allowed, what is tightened, what is refused and why."""

from typing import Any

import pytest

from upgraderun_operator.model.bounds import Bound
from upgraderun_operator.model.objects import UpgradePolicy, parse_policy
from upgraderun_operator.model.policy import (
    PolicyRefusal,
    ResolvedPolicy,
    allowed_repository,
    resolve,
)
from upgraderun_operator.model.run_spec import UpgradeRunSpec

APP = {"id": "Iv23liApp", "privateKeyRef": {"name": "forge-app", "key": "private-key.pem"}}
IMAGE = "registry.example/runner@sha256:" + "a" * 64
CREDENTIAL = {"secretRef": {"name": "forge", "key": "token"}}


def policy(**spec: Any) -> UpgradePolicy:
    return parse_policy(
        {
            "metadata": {"name": "default", "generation": 3},
            "spec": {
                "repositories": ["https://forge.example/team/app"],
                "credentials": {"push": CREDENTIAL},
                "images": {"runner": IMAGE, "python": [{"version": "3.11", "image": IMAGE}]},
                "sandbox": {"type": "Inline"},
                **spec,
            },
        }
    )


def run(**spec: Any) -> UpgradeRunSpec:
    return UpgradeRunSpec.model_validate(
        {"repository": {"url": "https://forge.example/team/app"}, **spec}
    )


def resolved(run_spec: UpgradeRunSpec, of: UpgradePolicy) -> ResolvedPolicy:
    answer = resolve(run_spec, of, allow_inline=True)
    assert isinstance(answer, ResolvedPolicy)
    return answer


def refused(
    run_spec: UpgradeRunSpec, of: UpgradePolicy, *, allow_inline: bool = True
) -> PolicyRefusal:
    answer = resolve(run_spec, of, allow_inline=allow_inline)
    assert isinstance(answer, PolicyRefusal)
    return answer


class TestLimits:
    """upgrade-run.md §9.5: a policy moves a number, a run only tightens it."""

    def test_silence_gives_the_defaults(self) -> None:
        answer = resolved(run(), policy())

        assert (50, 3, 3, 8, 3) == (
            answer.limits.steps,
            answer.limits.consecutive_failures,
            answer.limits.repeated_calls,
            answer.limits.validation_cycles,
            answer.limits.unchanged_validations,
        )
        assert (10, 3) == (answer.lost_attempts, answer.consecutive_lost_attempts)

    @pytest.mark.parametrize(
        ("of_policy", "of_run", "expected"),
        [(80, None, 80), (80, 20, 20), (20, 80, 20), (None, 80, 50), (None, 7, 7)],
    )
    def test_the_tighter_one_holds(
        self, of_policy: int | None, of_run: int | None, expected: int
    ) -> None:
        given = {} if of_policy is None else {"limits": {"steps": of_policy}}
        wished = {} if of_run is None else {"limits": {"steps": of_run}}

        answer = resolved(run(**wished), policy(**given))

        assert expected == answer.limits.steps

    @pytest.mark.parametrize(
        ("of_policy", "of_run", "expected"),
        [(None, None, 259_200), (3600, None, 3600), (3600, 7200, 7200), (3600, 0, 3600)],
    )
    def test_a_run_cannot_go_below_the_cooldown(
        self, of_policy: int | None, of_run: int | None, expected: int
    ) -> None:
        """upgrade-run.md §5.3: a run can't go below the policy's floor."""
        age = "minimumReleaseAgeSeconds"
        given = {} if of_policy is None else {"selection": {age: of_policy}}
        wished = {} if of_run is None else {"upgrade": {age: of_run}}

        answer = resolved(run(**wished), policy(**given))

        assert expected == answer.minimum_release_age_seconds

    def test_a_default_outside_its_range_is_no_bound(self) -> None:
        with pytest.raises(ValueError, match=r"default 5 is outside 1\.\.4"):
            Bound(5, 1, 4)


class TestRepositories:
    """H21: the repository must be allowed by the policy; anything doubtful is refused."""

    @pytest.mark.parametrize(
        "url",
        [
            "https://forge.example/team/app",
            "https://forge.example/team/app.git",
            "https://forge.example/team/app/",
            "https://forge.example:443/team/app",
            "https://FORGE.example/Team/App",
        ],
    )
    def test_other_spellings_of_the_same_repository_are_allowed(self, url: str) -> None:
        answer = allowed_repository(url, policy())

        assert not isinstance(answer, PolicyRefusal)
        assert "forge.example/team/app" == answer.identity

    @pytest.mark.parametrize(
        "url",
        [
            "http://forge.example/team/app",
            "https://forge.example:8443/team/app",
            "https://forge.example./team/app",
            "https://evil.example/team/app",
            "https://forge.example/team/app2",
            "https://forge.example/other/app",
            "https://forge.example/team/app/sub",
            "https://forge.example/team",
            "https://forge.example@evil.example/team/app",
            "https://user:token@forge.example/team/app",
            "https://forge.example/team/%61pp",
            "https://forge.example/team%2fapp",
            "https://forge.example/x/../team/app",
            "https://forge.example//team/app",
            "https://forge.example/team/.git",
            "https://forge.example/team/-app",
            "https://forge.example/team/app?x=1",
            "https://forge.example/team/app#x",
            "https://forge.example\\team\\app",
            "https://forge.ex\u0430mple/team/app",
            "https://xn--frge-7qa.example/team/app",
            "https://[::1]/team/app",
            "https://127.0.0.1/team/app",
            "https:/forge.example/team/app",
            "forge.example/team/app",
            "git@forge.example:team/app",
            "ssh://git@forge.example/team/app",
            "git://forge.example/team/app",
            "file:///team/app",
            "ext::sh -c id",
            "ftp://forge.example/team/app",
            " https://forge.example/team/app",
            "https://forge.example/team/app\n",
            "https://forge.example/team/app\t",
            "",
        ],
    )
    def test_anything_else_is_refused_with_a_next_step(self, url: str) -> None:
        """Forty spellings, here and above (H21)."""
        answer = allowed_repository(url, policy())

        assert isinstance(answer, PolicyRefusal)
        assert "spec.repositor" in answer.rule

    @pytest.mark.parametrize(
        ("url", "allowed"),
        [
            ("https://forge.example/team/anything", True),
            ("https://forge.example/TEAM/anything.git", True),
            ("https://forge.example/team2/app", False),
            ("https://forge.example/team/sub/app", False),
            ("https://other.example/team/app", False),
        ],
    )
    def test_a_last_star_allows_one_parent(self, url: str, *, allowed: bool) -> None:
        answer = allowed_repository(url, policy(repositories=["https://forge.example/team/*"]))

        assert allowed is not isinstance(answer, PolicyRefusal)

    @pytest.mark.parametrize("pattern", ["https://forge.example/*", "team/app", "https://*/a/b"])
    def test_an_unreadable_entry_refuses_and_names_itself(self, pattern: str) -> None:
        answer = allowed_repository(
            "https://forge.example/team/app", policy(repositories=[pattern])
        )

        assert isinstance(answer, PolicyRefusal)
        assert "spec.repositories[0]" == answer.rule


class TestRefusals:
    """The policy's word on sandbox, mode and credentials."""

    def test_inline_needs_the_charts_gate(self) -> None:
        """H7: the chart's allowInline and the policy."""
        assert "spec.sandbox.type" == refused(run(), policy(), allow_inline=False).rule

    def test_scripted_needs_a_decision_list(self) -> None:
        assert "spec.scripted" == refused(run(mode="Scripted"), policy()).rule

    def test_scripted_with_a_list_is_allowed(self) -> None:
        decisions = {"configMapRef": {"name": "d", "key": "list"}, "sha256": "b" * 64}

        answer = resolved(run(mode="Scripted"), policy(scripted=decisions))

        assert answer.spec.scripted is not None

    @pytest.mark.parametrize(
        "api",
        [
            "https://forge.example/api/v3",
            "https://FORGE.example/api/v3",
            "https://api.forge.example",
        ],
    )
    def test_an_app_pushes_too(self, api: str) -> None:
        answer = resolved(run(), policy(credentials={"app": APP}, forge={"apiURL": api}))

        assert answer.publishes

    @pytest.mark.parametrize("api", ["https://api.github.com", "https://[forge", "https://api.v3"])
    def test_what_one_forge_mints_isnt_sent_to_another(self, api: str) -> None:
        answer = refused(run(), policy(credentials={"app": APP}, forge={"apiURL": api}))

        assert "spec.forge.apiURL" == answer.rule
        assert "doesn't serve forge.example" in answer.message
        assert "Server's is https://forge.example/api/v3" in answer.message

    def test_publishing_needs_a_push_credential(self) -> None:
        answer = refused(run(), policy(credentials={}))

        assert "spec.credentials.push" == answer.rule
        assert "spec.publication.enabled=false" in answer.message

    @pytest.mark.parametrize("spec", [{"mode": "Baseline"}, {"publication": {"enabled": False}}])
    def test_a_dry_run_needs_none(self, spec: dict[str, Any]) -> None:
        answer = resolved(run(**spec), policy(credentials={}))

        assert not answer.publishes
