"""Error texts of uv 0.13.9 and what they mean (uv-facts §9)."""

import pytest

from upgraderun_runner.ecosystems.base import AcquisitionFailed, RegistryUnreachable, Unsupported
from upgraderun_runner.ecosystems.python.resolve import NotResolved, refusal_of
from upgraderun_runner.ecosystems.python.uverrors import (
    UvFailure,
    classify_failure,
    raise_acquisition,
)
from upgraderun_runner.sandbox.commands import CommandResult

URL = "https://registry.example/simple/aa/"


def failed(stderr: str, exit_code: int = 1, *, timed_out: bool = False) -> CommandResult:
    return CommandResult(exit_code, timed_out, False, b"", stderr.encode(), False, False, 1)


UNREACHABLE = {
    "dns": f"error: Failed to fetch: `{URL}`\n  cause: dns error",
    "connect": f"error: Request failed after 3 retries\n  cause: Failed to fetch: `{URL}`\n"
    "  cause: client error (Connect)\n  cause: tcp connect error\n  cause: Connection\n refused",
    "timeout": f"error: Failed to fetch: `{URL}`\n  cause: operation timed out",
    "tls": f"error: Failed to fetch: `{URL}`\n  cause: invalid peer certificate: UnknownIssuer",
    "http_5xx": f"error: Failed to fetch: `{URL}`\n  cause: HTTP status server error (503 "
    f"Service Unavailable) for url ({URL})",
    "http_429": f"error: Failed to fetch: `{URL}`\n  cause: HTTP status client error "
    f"(429 Too Many Requests) for url ({URL})",
    "broken_answer": f"error: Received some unexpected JSON from {URL}",
}


@pytest.mark.parametrize("kind", UNREACHABLE)
def test_an_outage_is_recognised_and_names_its_host(kind: str) -> None:
    with pytest.raises(RegistryUnreachable) as caught:
        raise_acquisition(failed(UNREACHABLE[kind], 2), "https://other.example/simple")

    assert ("unreachable", kind, "registry.example") == (
        caught.value.reason,
        caught.value.error_class,
        caught.value.host,
    )


ANSWERS = {
    UvFailure.NOT_FOUND: "error: Because aa was not found in the package registry and your "
    "project depends on aa",
    UvFailure.CONFLICT: "error: No solution found when resolving dependencies\n  cause: Because "
    "flask==2.3.3 depends on werkzeug>=2.3.7 ... requirements are unsatisfiable.",
    UvFailure.NEWER_TOOLCHAIN: "error: No solution found when resolving dependencies\n  cause: "
    "Because the requested Python version (>=3.8) does not satisfy Python>=3.9",
    UvFailure.SDIST_ONLY: "error: No solution found when resolving dependencies\n  cause: "
    "Because aa==1.1 has no usable wheels",
    UvFailure.STALE: "error: The lockfile at `uv.lock` needs to be updated, but `--check`",
}


@pytest.mark.parametrize("failure", ANSWERS)
def test_an_answer_of_the_resolver_is_no_outage(failure: UvFailure) -> None:
    result = failed(ANSWERS[failure])

    assert NotResolved(failure, ANSWERS[failure]) == refusal_of(result, URL)


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("hint: An index URL returned a 403 Forbidden error", "registry_denied"),
        ("hint: ... due to a lack of valid authentication credentials (401 Un)", "registry_denied"),
        ("cause: HTTP status client error (403 Forbidden) for url (x)", "registry_denied"),
        ("error: Hash mismatch for `aa==1`\n  Expected:", "integrity"),
        ("error: aa was not found in the cache", "incomplete"),
        ("error: something never seen", "toolchain_failed"),
    ],
)
def test_other_failures_end_the_acquisition(stderr: str, reason: str) -> None:
    with pytest.raises(AcquisitionFailed) as caught:
        refusal_of(failed(stderr, 2), URL)

    assert reason == caught.value.reason
    assert not isinstance(caught.value, RegistryUnreachable)


def test_denied_wins_over_not_found() -> None:
    text = f"{ANSWERS[UvFailure.NOT_FOUND]}\n\nhint: An index URL returned a 403 Forbidden"

    assert (UvFailure.DENIED, "") == classify_failure(failed(text))


def test_a_time_limit_is_no_answer() -> None:
    with pytest.raises(AcquisitionFailed) as caught:
        refusal_of(failed("", 137, timed_out=True), URL)

    assert "timeout" == caught.value.reason


def test_ignored_settings_are_refused_even_if_uv_succeeds() -> None:
    text = "warning: Failed to parse `pyproject.toml` during settings discovery:\n unknown field"

    with pytest.raises(Unsupported) as caught:
        refusal_of(failed(text, 0), URL)

    assert ["unknown_setting"] == [refusal.code for refusal in caught.value.refusals]


def test_success_is_no_refusal() -> None:
    assert refusal_of(failed("Resolved 3 packages", 0), URL) is None


def test_a_text_is_bounded() -> None:
    with pytest.raises(AcquisitionFailed) as caught:
        refusal_of(failed("x" * 10_000, 2), URL)

    assert 2000 == len(caught.value.text)
