"""The lock model: forks, edges, settings (upgrade-run.md §8.5, corpus A1)."""

import pytest

from support.locks import INDEX, Locked, lock_text, manifest_text, pair
from upgraderun_runner.ecosystems.python.lock import LockError, lock_model, parse_lock

FORKED = (
    Locked("pytest", "7.4.4", markers=("python_full_version < '3.8'",)),
    Locked(
        "pytest", "8.4.2", markers=("python_full_version >= '3.8'",), needs=('name = "pluggy"',)
    ),
    Locked("pluggy", "1.5.0"),
)


def test_several_entries_of_one_name_are_kept() -> None:
    lock = parse_lock(lock_text(*FORKED).encode(), "demo")

    assert ["7.4.4", "8.4.2"] == [entry.version for entry in lock.named("pytest")]
    assert len({entry.slot for entry in lock.entries}) == len(lock.entries)


def test_an_edge_with_a_version_means_that_entry_only() -> None:
    need = f'name = "pytest", version = "8.4.2", source = {{ registry = "{INDEX}" }}, marker = "x"'

    lock = parse_lock(lock_text(*FORKED, needs=(need,)).encode(), "demo")

    own = [edge for edge in lock.edges if edge.source == lock.project_slot]
    assert [f"pytest 8.4.2 registry+{INDEX}"] == [edge.target for edge in own]


def test_an_edge_without_version_means_the_one_entry() -> None:
    lock = parse_lock(lock_text(*FORKED).encode(), "demo")

    assert [f"pluggy 1.5.0 registry+{INDEX}"] == [edge.target for edge in lock.edges]


def test_extras_and_groups_label_their_edges() -> None:
    tail = (
        '[package.optional-dependencies]\nx = [{ name = "pluggy" }]\n'
        '[package.dev-dependencies]\ndev = [{ name = "pluggy" }]\n'
    )

    lock = parse_lock(lock_text(Locked("pluggy", "1.5.0"), tail=tail).encode(), "demo")

    assert ["extra:x", "group:dev"] == [edge.via for edge in lock.edges]


def test_files_carry_name_hash_and_kind() -> None:
    lock = parse_lock(lock_text(Locked("pluggy", "1.5.0")).encode(), "demo")

    entry = lock.named("pluggy")[0]

    assert [("pluggy-1.5.0-py3-none-any.whl", True), ("pluggy-1.5.0.tar.gz", False)] == [
        (file.name, file.is_wheel) for file in entry.files
    ]
    assert {"a" * 64} == {file.sha256 for file in entry.files}


def test_a_project_with_dynamic_version_has_a_slot() -> None:
    text = 'version = 1\n[[package]]\nname = "demo"\nsource = { editable = "." }\n'

    assert "demo  editable+." == parse_lock(text.encode(), "demo").project_slot


@pytest.mark.parametrize(
    "text",
    [
        "[[package",
        "revision = 1\n",
        "version = 1\n[[package]]\nname = 'x'\n",
        "version = 1\npackage = 'x'\n",
        "version = 1\n[[package]]\nname = 'x'\nsource = { registry = 'u' }\nwheels = [{}]\n",
    ],
)
def test_what_is_no_lock_is_told(text: str) -> None:
    with pytest.raises(LockError):
        parse_lock(text.encode(), "demo")


def test_settings_hold_everything_but_requirement_strings() -> None:
    manifest = manifest_text("pluggy>=1", more="[tool.ruff]\nline-length = 99\n")
    head = 'version = 1\nrevision = 5\nrequires-python = ">=3.10"\n[options]\nexclude-newer = "x"'

    model = lock_model(pair(manifest, lock_text(Locked("pluggy", "1.5.0"), head=head)))

    settings = {setting.key: setting.value for setting in model.settings}
    assert "99" == settings["manifest:tool.ruff.line-length"]
    assert '{"exclude-newer": "x"}' == settings["lock:options"]
    assert not [key for key in settings if key.startswith("manifest:project.dependencies")]
    assert "lock:revision" not in settings
