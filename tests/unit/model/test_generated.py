"""Generated files are committed and equal to what the models give (house style §7)."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


def load_generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "hack" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GENERATED: dict[Path, str] = dict(load_generator().generated())


@pytest.mark.parametrize("path", GENERATED, ids=str)
def test_generated_file_is_up_to_date(path: Path) -> None:
    """Run `make generate` and commit the result if this fails."""
    assert GENERATED[path] == (ROOT / path).read_text(encoding="utf-8")


def test_nothing_else_lies_in_the_folder_of_crds() -> None:
    """A kind that was removed from the models must not stay in the chart."""
    for folder in ("crds", "charts/upgraderun-operator/files/crds", "kustomize/base/crds"):
        assert {path.name for path in GENERATED if path.parent == Path(folder)} == {
            path.name for path in (ROOT / folder).iterdir()
        }
