"""What stands in the fences of a page: manifests and commands, as a reader would copy them.

    ```sh       commands that a test runs as they stand, in one shell per page
    ```console  commands that need a whole cluster: each is one of those that the cluster tests run
    ```yaml     whole objects; or `spec:` alone, a part of a policy to put into docs/samples/policy.yaml

A manifest whose first line is a comment with a file name, such as `# run.yaml`, is that file for the
page's commands. Callers: tests of docs, on an API server and on the cluster.
"""

import re
from pathlib import Path
from typing import Any, Final

import yaml

from support.worlds import merged

ROOT: Final = Path(__file__).resolve().parents[2]
DOCS: Final = ROOT / "docs"
SAMPLES: Final = DOCS / "samples"
_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"# ([\w-]+\.yaml)\n")


def fences(page: Path, language: str) -> tuple[str, ...]:
    """Texts of a page's fences of one language, in their order."""
    found = _FENCE.findall(page.read_text(encoding="utf-8"))
    return tuple(text for named, text in found if named == language)


def script(page: Path) -> str:
    """All commands of a page that a test runs, as one shell script."""
    return "".join(fences(page, "sh"))


def commands(text: str) -> tuple[str, ...]:
    """Single commands of fenced text: lines that are continued are one, comments are none."""
    joined = re.sub(r"\\\n\s*", "", text)
    bare = (line.partition("  #")[0].strip() for line in joined.splitlines())
    return tuple(line for line in bare if line and not line.startswith("#"))


def files(page: Path) -> dict[str, str]:
    """Manifests that the page's commands read, by name."""
    named = ((_FILE.match(text), text) for text in fences(page, "yaml"))
    return {match[1]: text for match, text in named if match is not None}


def objects(page: Path) -> tuple[dict[str, Any], ...]:
    """Objects of a page's manifests; a part of a policy is put into the complete sample."""
    loaded = [one for text in fences(page, "yaml") for one in yaml.safe_load_all(text)]
    return tuple(one if "kind" in one else _completed(one) for one in loaded)


def _completed(part: dict[str, Any]) -> dict[str, Any]:
    assert set(part) == {"spec"}, f"neither an object nor a part of a policy: {sorted(part)}"
    sample = yaml.safe_load((SAMPLES / "policy.yaml").read_text(encoding="utf-8"))
    return dict(merged(sample, part))
