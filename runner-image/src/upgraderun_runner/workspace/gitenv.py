"""Environment and settings of every git call, as security.md §6 lists them. Pure.

Caller: `workspace.git` alone. Settings travel on the command line, where no file of a repository
can override them; the environment is built from nothing.
"""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

_OLD_HISTORY = ("zeroPaddedFilemode", "badTimezone", "missingSpaceBeforeDate")
"""Old and harmless defects that real histories have: warnings, not refusals."""

ASKPASS_SCRIPT = """\
#!/bin/sh
# Answers git's two questions about one origin, from the environment of this one call.
case "$1" in
  "Username for '$UPGRADERUN_GIT_ORIGIN'"*) printf '%s\\n' "$UPGRADERUN_GIT_USERNAME" ;;
  "Password for '$UPGRADERUN_GIT_USER_ORIGIN'"*) printf '%s\\n' "$UPGRADERUN_GIT_SECRET" ;;
  *) exit 1 ;;
esac
"""


@dataclass(frozen=True, slots=True)
class Places:
    """Files and directories that the environment names."""

    home: Path
    global_config: Path
    askpass: Path
    git_dir: Path
    work_tree: Path


def setting_arguments(
    allowed_protocols: tuple[str, ...], ca_bundle: Path | None = None
) -> tuple[str, ...]:
    """`-c key=value` for every setting: command scope, which no other configuration overrides."""
    settings = [
        "core.hooksPath=/dev/null",
        "core.fsmonitor=false",
        "core.sshCommand=false",
        "core.attributesFile=/dev/null",
        "core.excludesFile=/dev/null",
        "core.protectHFS=true",
        "core.protectNTFS=true",
        "core.autocrlf=false",
        "core.fsync=all",
        "core.quotePath=true",
        "protocol.allow=never",
        *(f"protocol.{name}.allow=always" for name in allowed_protocols),
        "http.followRedirects=false",
        "transfer.fsckObjects=true",
        *(f"fetch.fsck.{name}=warn" for name in _OLD_HISTORY),
        *(f"fsck.{name}=warn" for name in _OLD_HISTORY),
        "transfer.bundleURI=false",
        "submodule.recurse=false",
        "fetch.recurseSubmodules=false",
        "push.recurseSubmodules=no",
        "push.followTags=false",
        "push.gpgSign=false",
        "safe.bareRepository=explicit",
        "credential.helper=",
        "init.templateDir=",
        "commit.gpgSign=false",
        "gpg.program=false",
        "gc.auto=0",
        "maintenance.auto=false",
    ]
    if ca_bundle is not None:
        settings.append(f"http.sslCAInfo={ca_bundle}")
    return tuple(part for setting in settings for part in ("-c", setting))


def base_environment(
    path: str, places: Places, allowed_protocols: tuple[str, ...]
) -> dict[str, str]:
    """The whole environment of a call without index, stamp or credential."""
    return {
        "PATH": path,
        "HOME": str(places.home),
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "GIT_DIR": str(places.git_dir),
        "GIT_WORK_TREE": str(places.work_tree),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(places.global_config),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": ":".join(allowed_protocols),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": str(places.askpass),
        "GIT_SSH_COMMAND": "false",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "false",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_LITERAL_PATHSPECS": "1",
    }


def stamp_environment(name: str, email: str, unix_seconds: int) -> dict[str, str]:
    """Author, committer and both dates, from the recipe."""
    date = f"@{unix_seconds} +0000"
    return {
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": email,
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_NAME": name,
        "GIT_COMMITTER_EMAIL": email,
        "GIT_COMMITTER_DATE": date,
    }


def credential_environment(origin: str, username: str, secret: str) -> dict[str, str]:
    """What askpass answers from; set for calls that talk to that origin, no others."""
    scheme, _, host = origin.partition("://")
    return {
        "UPGRADERUN_GIT_ORIGIN": origin,
        "UPGRADERUN_GIT_USER_ORIGIN": f"{scheme}://{username}@{host}",
        "UPGRADERUN_GIT_USERNAME": username,
        "UPGRADERUN_GIT_SECRET": secret,
    }


def origin_of(url: str) -> str:
    """`https://host[:port]` of a URL, lower case, without user information."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    literal = f"[{host}]" if ":" in host else host
    port = f":{parts.port}" if parts.port is not None else ""
    return f"{parts.scheme.lower()}://{literal}{port}"
