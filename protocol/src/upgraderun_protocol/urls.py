"""Repository URLs: one normal form, or a reason why not (security.md H21, H22).

Two spellings of one repository normalise to equal values; anything odd is refused, never guessed.
"""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from upgraderun_protocol.canonical import sha256_of

URL_MAX: Final = 512
_HOST: Final = re.compile(
    r"(?=.{1,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
)
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_.-]{1,100}")
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}


class UrlError(ValueError):
    """The text is no repository URL that is served here; the message says why and what is."""


@dataclass(frozen=True, slots=True)
class RepositoryUrl:
    """A normalised repository URL. `port` is None for the scheme's own.

    `path` is `owner/name` (two or more segments), lower case where hosts compare so, without `.git`.
    """

    scheme: str
    host: str
    port: int | None
    path: str

    @property
    def origin(self) -> str:
        """Scheme, host and port: where a credential may go."""
        return f"{self.scheme}://{self.host}" + (f":{self.port}" if self.port else "")

    @property
    def host_port(self) -> str:
        """Host, with the port if it isn't the scheme's own."""
        return self.host + (f":{self.port}" if self.port else "")

    @property
    def identity(self) -> str:
        """What makes two URLs the same repository: host and path, without case."""
        return f"{self.host_port}/{self.path.lower()}"

    @property
    def lease_hash(self) -> str:
        """Forty hex digits that name the repository Lease."""
        return sha256_of(self.identity.encode("ascii"))[:40]

    def __str__(self) -> str:
        return f"{self.origin}/{self.path}.git"


def belongs_to(api_url: str, repository: RepositoryUrl) -> bool:
    """Whether an API is that of the repository's forge, by their hosts.

    GitHub Enterprise Server has its API below the same host; github.com and the clouds with data
    residency put `api.` before theirs (https://docs.github.com/enterprise-server@latest/rest/enterprise-admin,
    https://docs.github.com/enterprise-cloud@latest/admin/data-residency/network-details-for-ghecom).
    """
    try:
        host = (urlsplit(api_url).hostname or "").lower()
    except ValueError:
        return False
    return host in {repository.host, f"api.{repository.host}"}


def is_repository_path(text: str) -> bool:
    """Whether a text is `owner/name` and nothing else, such as a forge may answer."""
    segments = text.split("/")
    return len(segments) == 2 and all(_SEGMENT.fullmatch(segment) for segment in segments)


def normalise(text: str) -> RepositoryUrl:
    """Read a repository URL. Raises UrlError for all that isn't plain http(s) to a named host.

    Refused: user info, query, fragment, IP addresses, a trailing dot, percent
    escapes, `..`, other schemes, `git@host:path`, names outside ASCII (use the xn-- form).
    Plain http passes here; a policy decides whether it names such an origin.
    """
    if len(text) > URL_MAX:
        raise UrlError(f"longer than {URL_MAX} characters")
    if not text.isascii() or not text.isprintable() or " " in text or "\\" in text:
        raise UrlError("only printable ASCII without spaces and backslashes")
    if "://" not in text:
        raise UrlError("write it as https://host/owner/name")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise UrlError(str(error)) from error
    if parts.scheme not in _DEFAULT_PORTS:
        raise UrlError(f"scheme {parts.scheme[:16]!r} is not served; write https://host/owner/name")
    if "@" in parts.netloc:
        raise UrlError("user info doesn't belong in a URL; the policy names the credential")
    if parts.query or parts.fragment or "?" in text or "#" in text or "%" in text:
        raise UrlError("no query, fragment or percent escape")
    host = (parts.hostname or "").lower()
    if not _HOST.fullmatch(host) or host.rpartition(".")[2].isdigit():
        raise UrlError(f"host {host[:64]!r} is no DNS name; addresses are not served")
    return RepositoryUrl(
        parts.scheme,
        host,
        None if port == _DEFAULT_PORTS[parts.scheme] else port,
        _normal_path(parts.path),
    )


def _normal_path(path: str) -> str:
    segments = path.removeprefix("/").removesuffix("/").removesuffix(".git").split("/")
    if len(segments) < 2:
        raise UrlError("the path names owner and repository: https://host/owner/name")
    for segment in segments:
        if (
            not _SEGMENT.fullmatch(segment)
            or segment.startswith((".", "-"))
            or segment.endswith(".")
        ):
            raise UrlError(f"path segment {segment[:64]!r} is no repository name")
    return "/".join(segments)
