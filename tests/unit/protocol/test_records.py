"""Frozen dataclasses to JSON and back, strictly (security.md H14)."""

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from upgraderun_protocol.messages import STATUS_OF, ErrorCode, Head, HelloRequest, Verdict
from upgraderun_protocol.records import (
    RecordError,
    bounded,
    from_bytes,
    from_json,
    json_key,
    parse_json,
    to_bytes,
    to_json,
)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Inner:
    count: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    name: str = bounded(string_max=5)
    pod_uid: str | None = None
    inner: Inner | None = None
    colour: Colour = Colour.RED
    many: tuple[Inner, ...] = bounded(items_max=2, default=())
    words: Mapping[str, int] | None = bounded(items_max=1, default=None)
    free: Any = None
    flag: bool = False

    def __post_init__(self) -> None:
        if self.name == "bad":
            raise ValueError("a bad name")


FULL = Record(
    "abc", "u", Inner(1), Colour.BLUE, (Inner(2), Inner(3)), {"b": 2}, free=[1], flag=True
)


def test_keys_are_spelled_as_the_api_does() -> None:
    assert [json_key(name) for name in ("pod_uid", "clone_url", "server_time", "at")] == [
        "podUID",
        "cloneURL",
        "serverTime",
        "at",
    ]


def test_records_read_back() -> None:
    assert from_json(Record, to_json(FULL)) == FULL
    assert from_bytes(Record, to_bytes(FULL)) == FULL
    assert from_json(Record, {"name": "x"}) == Record("x")


def test_none_is_left_out_and_sets_are_sorted() -> None:
    assert "podUID" not in to_json(Record("x"))
    assert to_json(frozenset({"b", "a"})) == ["a", "b"]
    assert to_json(Head) is Head


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ([], "expected an object"),
        ({}, "'name' is missing"),
        ({"name": "x", "odd": 1}, "unknown field 'odd'"),
        ({"name": 1}, "expected str"),
        ({"name": "abcdef"}, "longer than 5"),
        ({"name": "x", "inner": 1}, "expected an object"),
        ({"name": "x", "inner": {"count": "1"}}, r"\$.inner.count: expected int"),
        ({"name": "x", "inner": {"count": True}}, "expected int"),
        ({"name": "x", "colour": "green"}, "expected one of red, blue"),
        ({"name": "x", "many": {}}, "expected a list"),
        ({"name": "x", "many": [{}, {}, {}]}, "more than 2 items"),
        ({"name": "x", "words": []}, "expected an object"),
        ({"name": "x", "words": {"a": 1, "b": 2}}, "more than 1 keys"),
        ({"name": "x", "words": {"a": "1"}}, "expected int"),
        ({"name": "bad"}, "a bad name"),
    ],
)
def test_anything_else_is_refused_with_its_place(value: Any, why: str) -> None:
    with pytest.raises(RecordError, match=why):
        from_json(Record, value)


def test_null_is_absent_where_that_is_allowed() -> None:
    assert from_json(Record, {"name": "x", "podUID": None}).pod_uid is None


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"{",
        b'{"a":1,"a":2}',
        b"1.5",
        b"NaN",
        b"[" * 17 + b"]" * 17,
        b'{"a":' * 17 + b"1" + b"}" * 17,
    ],
)
def test_hostile_json_is_refused(data: bytes) -> None:
    with pytest.raises(RecordError):
        parse_json(data)


def test_brackets_inside_strings_are_no_depth() -> None:
    text = '{"a": "' + "[" * 40 + '\\"' + "{" * 40 + '"}'

    assert parse_json(text.encode())["a"].startswith("[[")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_no_bytes_crash_the_parser(data: bytes) -> None:
    try:
        from_bytes(Verdict, data)
    except RecordError:
        return
    raise AssertionError("random bytes are no verdict")


def test_messages_declare_their_bounds() -> None:
    with pytest.raises(RecordError, match="longer than 32"):
        from_json(
            HelloRequest,
            {"protocol": {"min": 1, "max": 1}, "bootNonce": "x" * 33, "version": "1"},
        )


def test_every_error_code_has_its_status() -> None:
    assert set(STATUS_OF) == set(ErrorCode)
    assert all(400 <= status < 600 for status in STATUS_OF.values())
