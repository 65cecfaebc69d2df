"""Read project pages of a registry's JSON simple API: one URL per argument, one JSON line per URL.

A sandbox command starts it with `python -I`; nothing imports it (style.md §9). Standard library only.
It follows redirects, tries an unreachable registry three times, and judges nothing.
"""

import http.client
import json
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

ACCEPT = "application/vnd.pypi.simple.v1+json"
PAGE_BYTES_MAX = 64 * 1024 * 1024
TIMEOUT_SECONDS = 30
PAUSES_SECONDS = (0.5, 2.0)
NOT_FOUND = (404, 410)
DENIED = (401, 403)
TOO_MANY = 429
SERVER_ERROR = 500


def read(url: str) -> dict[str, object]:
    """Ask until there is an answer or the tries are used up."""
    answer = ask(url)
    for pause in PAUSES_SECONDS:
        if answer["status"] != "unreachable":
            break
        time.sleep(pause)
        answer = ask(url)
    return answer


def ask(url: str) -> dict[str, object]:
    """Ask once."""
    request = urllib.request.Request(url, headers={"Accept": ACCEPT, "User-Agent": "upgraderun"})  # noqa: S310 - the URL stands in the lock and is allowed by the policy
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as response:  # noqa: S310 - as above
            kind = response.headers.get_content_type()
            body = response.read(PAGE_BYTES_MAX + 1)
    except urllib.error.HTTPError as error:
        return refused(error.code, url)
    except urllib.error.URLError as error:
        return unreachable(outage(error.reason), f"{url}: {error.reason}")
    except (OSError, http.client.HTTPException) as error:
        return unreachable(outage(error), f"{url}: {error!r}")
    if len(body) > PAGE_BYTES_MAX:
        return {"status": "too_large", "text": f"{url}: the page is too large"}
    if kind != ACCEPT:
        return {"status": "no_json", "text": f"{url}: the registry doesn't serve the JSON API"}
    return page(url, body)


def refused(code: int, url: str) -> dict[str, object]:
    """Tell an answer that says no from one that says later."""
    text = f"{url}: HTTP {code}"
    if code in NOT_FOUND:
        return {"status": "not_found", "text": text}
    if code in DENIED:
        return {"status": "denied", "text": text}
    if code == TOO_MANY:
        return unreachable("http_429", text)
    if code >= SERVER_ERROR:
        return unreachable("http_5xx", text)
    return {"status": "refused", "text": text}


def unreachable(kind: str, text: str) -> dict[str, object]:
    """An answer that didn't come."""
    return {"status": "unreachable", "kind": kind, "text": text}


def outage(reason: object) -> str:
    """Name the kind of outage."""
    if isinstance(reason, socket.gaierror):
        return "dns"
    if isinstance(reason, ssl.SSLError):
        return "tls"
    return "timeout" if isinstance(reason, TimeoutError) else "connect"


def page(url: str, body: bytes) -> dict[str, object]:
    """Keep what a candidate is judged by."""
    try:
        files = json.loads(body)["files"]
        rows = [
            {
                "filename": file["filename"],
                "requiresPython": file.get("requires-python"),
                "yanked": bool(file.get("yanked")),
                "uploadTime": file.get("upload-time"),
            }
            for file in files
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return unreachable("broken_answer", f"{url}: {error!r}")
    return {"status": "ok", "files": rows}


def main(urls: list[str]) -> int:
    """Read all pages, a few at a time, and write the answers in the order of the arguments."""
    with ThreadPoolExecutor(max_workers=8) as pool:
        for answer in pool.map(read, urls):
            sys.stdout.write(json.dumps(answer, separators=(",", ":")) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
