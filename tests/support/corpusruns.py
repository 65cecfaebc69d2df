"""A case of the corpus as one run of the product: hosted repository, policy, spec, its clone.

Callers: the tests that run the corpus through the product. The policy names no registry, so that
the product's default is asked, and trusts the git host beside what this machine trusts.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from support.corpus import BuiltCase, Case, build_case
from support.gitclient import authenticated, git
from support.hosting import Tokens, publish
from support.kubeapi import Json
from support.platform import Platform
from support.worlds import TOKEN_KEY, Outside

OWNER: Final = "corpus"
PROPOSING: Final = "proposal_prepared"


@dataclass(frozen=True, slots=True)
class CaseRun:
    """One case, ready to be run in a platform's namespace."""

    built: BuiltCase
    tokens: Tokens
    outside: Outside

    @property
    def case(self) -> Case:
        """The case."""
        return self.built.case

    @property
    def name(self) -> str:
        """Name of run and policy."""
        return name_of(self.case)

    @property
    def repository(self) -> str:
        """`owner/name` on the host."""
        return f"{OWNER}/{self.name}"

    @property
    def publishes(self) -> bool:
        """Whether the approver is asked and a pull request must exist at the end."""
        return self.case.answer.outcome == PROPOSING

    @property
    def outcome(self) -> str:
        """How the run must end: what the case calls prepared is published here."""
        return "proposal_published" if self.publishes else self.case.answer.outcome

    @property
    def spec(self) -> Json:
        """The run's spec."""
        asked = {"upgrade": dict(self.case.upgrade)} if self.case.upgrade else {}
        return {
            "repository": {"url": f"{self.outside.seen.host_url}/{self.repository}"},
            "mode": "Rules",
            "policyRef": {"name": self.name},
            **asked,
        }

    def clone(self, directory: Path) -> None:
        """Clone what the host has now, at the base commit."""
        url = authenticated(
            self.outside.servers.host.repository_url(self.repository), self.tokens.clone
        )
        directory.parent.mkdir(parents=True, exist_ok=True)
        git(directory.parent, "clone", "-q", url, directory.name)
        git(directory, "checkout", "-q", "--detach", self.built.base_commit)


def name_of(case: Case) -> str:
    """What all that belongs to a case is called."""
    return f"{case.name.lower()}-{case.sdist.name}"


async def open_case(case: Case, outside: Outside, platform: Platform) -> CaseRun:
    """Host the case's repository and apply its policy with the tokens that it names."""
    name, built = name_of(case), build_case(case)
    tokens = publish(outside.servers.host, f"{OWNER}/{name}", built.repository, built.base_commit)
    secrets = {"clone": tokens.clone, "push": tokens.push}
    for use, token in secrets.items():
        await platform.apply_secret(f"{name}-{use}", {TOKEN_KEY: token})
    spec = {
        **platform.policy,
        "repositories": [f"{outside.seen.host_url}/{OWNER}/*"],
        "credentials": {
            use: {"secretRef": {"name": f"{name}-{use}", "key": TOKEN_KEY}} for use in secrets
        },
    }
    # Large suites on a busy machine: the product's own bound, not that of the small scenarios.
    del spec["validation"]
    await platform.apply_named_policy(name, spec)
    return CaseRun(built, tokens, outside)
