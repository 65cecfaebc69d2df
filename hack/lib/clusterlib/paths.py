"""Where everything lives: caches and state, both outside the checkout.

Callers: every module here. Nothing else decides about a location.
"""

import os
from pathlib import Path

HACK = Path(__file__).resolve().parents[2]
CHECKOUT = HACK.parent


def cache_home() -> Path:
    """Folder of what can be built again: binaries, base images, layers."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "upgraderun"


def state_home() -> Path:
    """Folder of what running clusters need; empty when none runs."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "upgraderun"
