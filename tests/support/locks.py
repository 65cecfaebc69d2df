"""Small manifests and locks as text, for tests of the Python ecosystem.

A `Locked` is one entry; `lock_text` writes what uv would write for it, wheels and hashes included.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from upgraderun_runner.ecosystems.base import Pair

INDEX = "https://pypi.org/simple"
FILES = "https://files.pythonhosted.org/packages"


@dataclass(frozen=True, slots=True)
class Locked:
    """One entry of a lock. `needs` are inline tables without braces, such as `name = "x"`."""

    name: str
    version: str
    needs: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    index: str = INDEX
    wheel: bool = True
    hashes: Mapping[str, str] = field(default_factory=dict)
    files: str = FILES

    def text(self) -> str:
        """The entry as TOML."""
        lines = ["[[package]]", f'name = "{self.name}"', f'version = "{self.version}"']
        lines.append(f'source = {{ registry = "{self.index}" }}')
        if self.markers:
            rows = ", ".join(f'"{marker}"' for marker in self.markers)
            lines.append(f"resolution-markers = [{rows}]")
        if self.needs:
            rows = ", ".join(f"{{ {need} }}" for need in self.needs)
            lines.append(f"dependencies = [{rows}]")
        lines.append(f"sdist = {self._file(f'{self.name}-{self.version}.tar.gz')}")
        if self.wheel:
            names = [n for n in self.hashes if n.endswith(".whl")] or [self.wheel_name]
            lines.append("wheels = [" + ", ".join(self._file(name) for name in names) + "]")
        return "\n".join(lines)

    @property
    def wheel_name(self) -> str:
        """File name of the usual wheel."""
        return f"{self.name.replace('-', '_')}-{self.version}-py3-none-any.whl"

    def _file(self, name: str) -> str:
        digest = self.hashes.get(name, "a" * 64)
        return f'{{ url = "{self.files}/{name}", hash = "sha256:{digest}" }}'


def lock_text(
    *entries: Locked,
    project: str = "demo",
    needs: tuple[str, ...] = (),
    head: str = 'version = 1\nrevision = 5\nrequires-python = ">=3.10"',
    tail: str = "",
    source: str = '{ editable = "." }',
) -> str:
    """A lock of a project with entries."""
    rows = ", ".join(f"{{ {need} }}" for need in needs)
    own = [
        "[[package]]",
        f'name = "{project}"',
        'version = "1.0"',
        f"source = {source}",
        f"dependencies = [{rows}]",
        tail,
    ]
    return "\n\n".join([head, "\n".join(own), *(entry.text() for entry in entries)]) + "\n"


def manifest_text(
    *dependencies: str, requires_python: str | None = ">=3.10", more: str = "", project: str = ""
) -> str:
    """A manifest with dependencies; `project` are further lines of its table."""
    rows = ", ".join(f'"{item}"' for item in dependencies)
    python = f'requires-python = "{requires_python}"\n' if requires_python else ""
    head = (
        f'[project]\nname = "demo"\nversion = "1.0"\n{python}dependencies = [{rows}]\n{project}\n'
    )
    build = '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
    return head + build + more


def pair(manifest: str, lock: str) -> Pair:
    """Both as bytes."""
    return Pair(manifest.encode(), lock.encode())
