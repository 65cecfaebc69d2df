"""How both roles reach git host and forge: git's settings, trust, and giving a token back.

Callers: run, publish. The publisher, which holds the token that may push, loads nothing of the runner.
"""

import ssl
from functools import cache
from pathlib import Path

from upgraderun_runner.forge.http import WritePacer
from upgraderun_runner.process import Speaking
from upgraderun_runner.workspace.git import GitSettings


def git_settings(speaking: Speaking, ca_bundle: Path | None) -> GitSettings:
    """How git is started; plain http only where the policy's own repository has such a URL."""
    scheme = speaking.bundle.repository.url.partition(":")[0]
    return GitSettings(
        private=speaking.machine.private / "git",
        allowed_protocols=("http",) if scheme == "http" else ("https",),
        ca_bundle=ca_bundle,
    )


async def give_back(speaking: Speaking, ca_bundle: Path | None) -> None:
    """Revoke a minted token; what goes wrong is logged, for the token ends by itself."""
    seams = speaking.machine.seams
    tls = trusted(ca_bundle)
    problem = await speaking.credentials.give_back(WritePacer(seams.monotonic, seams.sleep), tls)
    if problem is not None:
        speaking.machine.log(problem)


@cache
def trusted(ca_bundle: Path | None) -> ssl.SSLContext | bool:
    """Whom calls to the forge trust: the policy's bundle, else the system's roots.

    Read once: a bundle of public roots takes 50 to 90 ms of processor time.
    """
    return True if ca_bundle is None else ssl.create_default_context(cafile=str(ca_bundle))
