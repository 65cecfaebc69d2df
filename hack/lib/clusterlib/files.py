"""Files that running programs watch: written only when they change.

Callers: `kubeconfig`, `nodeagents`. kube-proxy, for one, ends when its configuration file is written.
"""

from pathlib import Path


def write_changed(path: Path, text: str) -> Path:
    """Write the text, for its owner alone, unless it is there already; give back the path."""
    if not path.exists() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch(mode=0o600)
        path.write_text(text)
    return path
