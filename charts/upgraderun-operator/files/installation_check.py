"""What `helm test` asks: does every replica serve, does exactly one lead, is TLS ours.

Run by the chart's test pod with the operator's image; the standard library only. Exit code 1 names
what is missing. Nothing is written anywhere.
"""

import argparse
import http.client
import socket
import ssl
import sys
import time
from urllib.parse import urlsplit

PAUSE_SECONDS = 1.0
CALL_SECONDS = 5.0


class Missing(Exception):  # noqa: N818  what is missing, in words for people
    """The installation isn't as it should be, or not yet."""


def replicas(host: str, port: int) -> list[str]:
    """Addresses of all replicas, from the headless Service."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise Missing(f"{host} has no address: {error}") from error
    return sorted({str(entry[4][0]) for entry in found})


def fetch(connection: http.client.HTTPConnection, path: str) -> tuple[int, str]:
    """Status and text of one GET."""
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except (OSError, http.client.HTTPException) as error:
        place = f"{connection.host}:{connection.port}{path}"
        raise Missing(f"{place} doesn't answer: {error}") from error
    finally:
        connection.close()


def leads(address: str, port: int) -> bool:
    """Whether this replica leads; it must be ready."""
    for path in ("/readyz", "/metrics"):
        connection = http.client.HTTPConnection(address, port, timeout=CALL_SECONDS)
        status, text = fetch(connection, path)
        if status != http.HTTPStatus.OK:
            raise Missing(f"replica {address} says {status} on {path}: {text.strip()}")
    return "upgraderun_leader 1.0" in text.splitlines()


def check(arguments: argparse.Namespace) -> str:
    """One round. Raises Missing."""
    host, _, port = arguments.metrics.rpartition(":")
    addresses = replicas(host, int(port))
    leaders = [address for address in addresses if leads(address, int(port))]
    if len(leaders) != 1:
        raise Missing(f"{len(leaders)} of {len(addresses)} replicas lead, expected exactly one")
    api = urlsplit(arguments.api)
    try:
        trust = ssl.create_default_context(cafile=arguments.ca)
    except OSError as error:
        raise Missing(f"{arguments.ca}: {error}") from error
    connection = http.client.HTTPSConnection(
        str(api.hostname), api.port, timeout=CALL_SECONDS, context=trust
    )
    status, _ = fetch(connection, "/")
    if status != http.HTTPStatus.NOT_FOUND:
        raise Missing(
            f"{arguments.api} says {status}, which the runner API never says to a stranger"
        )
    return f"{len(addresses)} replicas are ready, {leaders[0]} leads, {arguments.api} is trusted"


def main(argv: list[str]) -> int:
    """Try until it holds or the time is over."""
    parser = argparse.ArgumentParser(description="Checks an installation of the operator.")
    parser.add_argument("--api", required=True, help="address of the runner API")
    parser.add_argument("--ca", required=True, help="file with the authority that pods trust")
    parser.add_argument("--metrics", required=True, help="host and port of the metrics")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to try")
    arguments = parser.parse_args(argv)
    end = time.monotonic() + arguments.seconds
    while True:
        try:
            print(check(arguments))
        except Missing as missing:
            if time.monotonic() >= end:
                print(missing, file=sys.stderr)
                return 1
            time.sleep(PAUSE_SECONDS)
        else:
            return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
