"""The HTTP session that kopf watches with: the same server and identity as our own client.

Only `main` uses it, inside the watching thread's own loop.
"""

import aiohttp

from upgraderun_operator.adapters.kubeconfig import ClusterConfig


def open_watch_session(config: ClusterConfig) -> aiohttp.ClientSession:
    """Open a session; a token file is read now, so a renewed token needs a new session."""
    token = config.token_file.read_text("ascii").strip() if config.token_file else config.token
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=config.tls),
        headers={"Authorization": f"Bearer {token}"} if token else {},
        trust_env=False,
    )
