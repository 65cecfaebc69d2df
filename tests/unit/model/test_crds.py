"""The CRDs: bounds, forbidden fields, columns, and nothing that a structural schema can't hold."""

from collections.abc import Iterator
from typing import Any

import pytest

from upgraderun_operator.model.crds import definitions
from upgraderun_operator.model.names import GROUP
from upgraderun_operator.model.rules import IMMUTABLE_RUN_FIELDS
from upgraderun_operator.model.run_spec import UpgradeRunSpec

ALL = definitions()
USER_KINDS = ("upgraderuns", "upgradeapprovals")
FORBIDDEN_WORDS = (
    *("image", "command", "args", "env", "serviceaccount", "secret", "volume", "podtemplate"),
    *("node", "namespace", "configmap", "runtimeclass"),
)


def version_of(plural: str) -> dict[str, Any]:
    version: dict[str, Any] = ALL[plural]["spec"]["versions"][0]
    return version


def schema_of(plural: str) -> dict[str, Any]:
    schema: dict[str, Any] = version_of(plural)["schema"]["openAPIV3Schema"]
    return schema


def walk(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    if "items" in schema:
        yield from walk(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from walk(schema["additionalProperties"], f"{path}{{}}")


def own_fields(plural: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, schema in walk(schema_of(plural)):
        if path not in {"", ".apiVersion", ".kind", ".metadata"}:
            yield path, schema


@pytest.mark.parametrize("plural", ALL)
class TestBounds:
    """H20: every string has maxLength, every list maxItems."""

    def test_every_string_is_bounded_or_an_enum(self, plural: str) -> None:
        unbounded = [
            path
            for path, schema in own_fields(plural)
            if schema["type"] == "string" and "maxLength" not in schema and "enum" not in schema
        ]

        assert [] == unbounded

    def test_every_list_is_bounded(self, plural: str) -> None:
        unbounded = [
            path
            for path, schema in own_fields(plural)
            if schema["type"] == "array" and "maxItems" not in schema
        ]

        assert [] == unbounded

    def test_every_map_is_bounded(self, plural: str) -> None:
        unbounded = [
            path
            for path, schema in own_fields(plural)
            if "additionalProperties" in schema and "maxProperties" not in schema
        ]

        assert [] == unbounded

    def test_every_field_is_explained(self, plural: str) -> None:
        silent = [
            path
            for path, schema in own_fields(plural)
            if not path.endswith(("[]", "{}")) and not schema.get("description")
        ]

        assert [] == silent

    def test_every_enum_is_camel_case_but_the_journal(self, plural: str) -> None:
        odd = [
            path
            for path, schema in own_fields(plural)
            if not path.startswith(".status.journal.entries")
            and any(not value[0].isupper() for value in schema.get("enum", ()))
        ]

        assert [] == odd

    def test_defaults_of_objects_are_filled_in_by_the_server(self, plural: str) -> None:
        """But for the status of a run that nobody has seen, which is one field only."""
        literal = [
            path
            for path, schema in own_fields(plural)
            if isinstance(schema.get("default"), dict) and schema["default"] != {}
        ]

        assert ([".status"] if plural == "upgraderuns" else []) == literal


@pytest.mark.parametrize("plural", USER_KINDS)
def test_a_user_has_no_field_that_borrows_the_operators_rights(plural: str) -> None:
    """H20: no field for image, command, env, account, secret, volume, template, node, namespace."""
    borrowed = [
        path
        for path, _ in walk(schema_of(plural)["properties"]["spec"], ".spec")
        if any(word in path.rpartition(".")[2].lower() for word in FORBIDDEN_WORDS)
    ]

    assert [] == borrowed


class TestRules:
    """DESIGN §3: rules sit at the root and none iterates over entries."""

    @pytest.mark.parametrize("plural", ALL)
    def test_rules_sit_at_the_root_only(self, plural: str) -> None:
        below = [path for path, schema in walk(schema_of(plural)) if "rule" in str(schema.keys())]

        assert [] == below

    @pytest.mark.parametrize("plural", ALL)
    def test_no_rule_iterates(self, plural: str) -> None:
        rules = [rule["rule"] for rule in schema_of(plural)["x-kubernetes-validations"]]

        assert [] == [rule for rule in rules if ".all(" in rule or ".exists(" in rule]

    @pytest.mark.parametrize("plural", ALL)
    def test_every_message_names_a_field_and_a_next_step(self, plural: str) -> None:
        rules = schema_of(plural)["x-kubernetes-validations"]

        assert [] == [rule for rule in rules if ": " not in rule["message"]]

    def test_mutable_and_immutable_fields_are_the_whole_spec(self) -> None:
        """DESIGN §3: immutable, except suspend, cancel (the TTL comes with what acts on it)."""
        fields = set(schema_of("upgraderuns")["properties"]["spec"]["properties"])

        assert {"suspend", "cancel"} == fields - set(IMMUTABLE_RUN_FIELDS)
        assert set(IMMUTABLE_RUN_FIELDS) <= fields
        assert len(fields) == len(UpgradeRunSpec.model_fields)


class TestPresentation:
    """DESIGN §3, conventions."""

    def test_runs_show_the_columns_of_the_design(self) -> None:
        columns = version_of("upgraderuns")["additionalPrinterColumns"]

        assert ["Phase", "Dependency", "From", "To", "Approved", "PR", "Age"] == [
            column["name"] for column in columns if "priority" not in column
        ]
        assert ["Repository", "Attempt", "Outcome", "Duration"] == [
            column["name"] for column in columns if column.get("priority") == 1
        ]

    @pytest.mark.parametrize("plural", ALL)
    def test_columns_point_at_fields_that_exist(self, plural: str) -> None:
        paths = {path for path, _ in walk(schema_of(plural))} | {
            ".metadata.creationTimestamp",
            '.status.conditions[?(@.type=="Approved")].status',
        }

        columns = version_of(plural)["additionalPrinterColumns"]

        assert [] == [column for column in columns if column["jsonPath"] not in paths]

    def test_selectable_fields_are_those_of_the_design(self) -> None:
        selectable = {
            plural: [field["jsonPath"] for field in version_of(plural).get("selectableFields", ())]
            for plural in ALL
        }

        assert {
            "upgraderuns": [".status.finished", ".status.conflict.kind"],
            "upgradeapprovals": [".spec.runRef.uid"],
            "upgradepolicies": [],
            "upgradereports": [],
        } == selectable

    def test_kinds_are_namespaced_and_only_runs_have_a_status(self) -> None:
        assert {"Namespaced"} == {crd["spec"]["scope"] for crd in ALL.values()}
        assert ["upgraderuns"] == [p for p in ALL if "subresources" in version_of(p)]
        assert {GROUP} == {crd["spec"]["group"] for crd in ALL.values()}

    def test_the_journal_is_one_atomic_list(self) -> None:
        journal = schema_of("upgraderuns")["properties"]["status"]["properties"]["journal"]

        assert "atomic" == journal["properties"]["entries"]["x-kubernetes-list-type"]
