"""What all fixture servers share: own processes, TLS, faults before and after, the request log."""

import ssl
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from support.fixtures.control import ControlError
from support.fixtures.faults import Fault
from support.fixtures.httpd import Tls
from support.fixtures.launch import Registry, host_process, registry_process
from support.fixtures.packages import Package, Release

TINY = Package("tiny", (Release("1.0.0", {"tiny/__init__.py": "VALUE = 1\n"}),))
PAGE = "/one/simple/tiny/"


@pytest.fixture
def served(registry: Registry) -> Registry:
    registry.control.put_index("one", [TINY])
    return registry


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> Tls:
    folder = tmp_path_factory.mktemp("tls")
    pair = Tls(folder / "server.crt", folder / "server.key", folder / "server.crt")
    options = (
        "-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
        "-subj /CN=fixture -addext subjectAltName=IP:127.0.0.1"
    )
    files = ["-keyout", str(pair.key), "-out", str(pair.certificate)]
    subprocess.run(["openssl", "req", *options.split(), *files], check=True, capture_output=True)
    return pair


def get(registry: Registry, path: str = PAGE) -> httpx.Response:
    return httpx.get(registry.url + path, trust_env=False, timeout=30)


class TestFaults:
    @pytest.mark.parametrize("action", ["drop", "drop_after"])
    def test_a_dropped_answer_is_a_transport_error(self, served: Registry, action: str) -> None:
        served.control.add_fault(Fault(action=action, times=1))

        with pytest.raises(httpx.RemoteProtocolError):
            get(served)

        assert 200 == get(served).status_code

    def test_garbage_comes_with_status_200(self, served: Registry) -> None:
        served.control.add_fault(Fault(action="garbage"))

        answer = get(served)

        assert 200 == answer.status_code
        with pytest.raises(ValueError, match="Expecting value"):
            answer.json()

    def test_who_hangs_is_let_go_when_the_faults_are_cleared(self, served: Registry) -> None:
        served.control.add_fault(Fault(action="hang", seconds=600, times=1))
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(get, served)
            while served.control.faults()[0]["times"]:
                assert not waiting.done()
            served.control.clear_faults()

            error = waiting.exception(timeout=30)

        assert isinstance(error, httpx.RemoteProtocolError)

    def test_counts_are_skipped_first_and_then_used_up(self, served: Registry) -> None:
        served.control.add_fault(Fault(action="status", skip=1, times=2))

        assert [200, 503, 503, 200] == [get(served).status_code for _ in range(4)]

    def test_a_rule_can_mean_one_kind_of_client(self, served: Registry) -> None:
        served.control.add_fault(Fault(action="status", status=403, user_agent="^uv/"))

        with httpx.Client(trust_env=False, headers={"User-Agent": "uv/0.13.9"}) as uv:
            assert 403 == uv.get(served.url + PAGE).status_code
        assert 200 == get(served).status_code

    def test_an_unknown_action_is_refused(self, served: Registry) -> None:
        with pytest.raises(ControlError, match="unknown action"):
            served.control.call("POST", "faults", {"action": "explode"})


class TestLog:
    def test_control_requests_are_not_logged(self, served: Registry) -> None:
        get(served)
        served.control.requests()

        assert [("GET", PAGE, 200)] == [
            (e["method"], e["path"], e["answer"]) for e in served.control.requests()
        ]

    def test_numbers_go_on_after_the_log_was_cleared(self, served: Registry) -> None:
        get(served)
        served.control.forget_requests()
        get(served)

        assert [2] == [e["seq"] for e in served.control.requests()]
        assert [] == served.control.requests(since=3)


class TestProcesses:
    def test_a_registry_runs_in_its_own_process_and_stops(self, tmp_path: Path) -> None:
        with registry_process(tmp_path) as running:
            running.control.put_index("one", [TINY])
            assert 200 == get(running).status_code

        with pytest.raises(httpx.ConnectError):
            get(running)

    def test_a_host_serves_git_and_api_over_tls(self, tmp_path: Path, tls: Tls) -> None:
        with host_process(tmp_path, tls) as running:
            assert running.url.startswith("https://")
            context = ssl.create_default_context(cafile=tls.authority)
            running.control.put_repository("acme/shop", private=False)

            api = httpx.get(f"{running.api_url}/repos/acme/shop", verify=context, trust_env=False)
            git = subprocess.run(
                ["git", "ls-remote", running.repository_url("acme/shop")],
                env={"GIT_SSL_CAINFO": str(tls.certificate), "PATH": "/usr/bin:/bin"},
                check=False,
                capture_output=True,
                text=True,
            )

        assert f"{running.url}/acme/shop" == api.json()["html_url"]
        assert (0, "") == (git.returncode, git.stderr)
