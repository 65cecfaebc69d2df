"""One spelling for everything that is hashed (upgrade-run.md §1)."""

from collections import OrderedDict
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upgraderun_protocol.canonical import (
    NotCanonicalError,
    canonical_json,
    digest_of,
    is_git_id,
    is_sha256,
    sha256_of,
)
from upgraderun_protocol.records import parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=4)
    ),
    max_leaves=8,
)


def test_keys_are_sorted_and_nothing_is_escaped_needlessly() -> None:
    assert (
        canonical_json({"b": [1, True, None], "a": "ü"}) == '{"a":"ü","b":[1,true,null]}'.encode()
    )


def test_other_mappings_and_sequences_are_written_as_usual() -> None:
    value = MappingProxyType({"a": (1, MappingProxyType({"b": range(2)}))})

    assert canonical_json(value) == b'{"a":[1,{"b":[0,1]}]}'


@given(VALUES)
def test_what_is_written_reads_back_and_orders_don_t_matter(value: object) -> None:
    written = canonical_json(value)

    assert parse_json(written) == value
    assert canonical_json(_reversed(value)) == written


def _reversed(value: object) -> object:
    if isinstance(value, dict):
        return OrderedDict((key, _reversed(item)) for key, item in reversed(value.items()))
    return [_reversed(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    "value",
    [1.5, {1: "a"}, "\ud800", {"\udfff": 1}, b"bytes", bytearray(b"x"), object(), [{"a": {2.5}}]],
)
def test_what_json_would_blur_is_refused(value: object) -> None:
    with pytest.raises(NotCanonicalError):
        canonical_json(value)


def test_digests_are_of_the_canonical_bytes() -> None:
    assert digest_of({"a": 1}) == sha256_of(b'{"a":1}')


def test_spellings_of_digests() -> None:
    assert is_sha256("0" * 64)
    assert not is_sha256("0" * 63)
    assert not is_sha256("A" * 64)
    assert is_git_id("f" * 40)
    assert not is_git_id("f" * 41)
    assert not is_git_id("g" * 40)
