"""Which credential speaks for a policy: the Secret that it names, read by its exact name, live.

Callers: `observe.readers` for the operator's own looks, `api` for tokens of pods. The values stay in
what is returned: nothing is stored, and nothing is written into a message.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Protocol

from upgraderun_operator.answers import Denied, GetAnswer, Ok, Unknown
from upgraderun_operator.decide.readings import Unreadable
from upgraderun_operator.decide.views import DestinationRefused
from upgraderun_operator.model.policy import ResolvedPolicy
from upgraderun_operator.model.policy_spec import KeyRef
from upgraderun_operator.observe.ports import (
    AppGrant,
    Before,
    ForgeTarget,
    ForgeTokens,
    Minted,
    Purpose,
    nothing_before,
)
from upgraderun_operator.resources import SECRETS, Resource
from upgraderun_protocol.redact import Redactor, SecretText


class Secrets(Protocol):
    """The one read that this module needs."""

    async def get(self, resource: Resource, namespace: str | None, name: str) -> GetAnswer:
        """Read one object, quorum."""
        ...


async def forge_target(
    secrets: Secrets,
    tokens: ForgeTokens,
    redactor: Redactor,
    namespace: str,
    policy: ResolvedPolicy,
) -> ForgeTarget | DestinationRefused | Unreadable:
    """Name the repository with a token for the operator's own look; for the policy's host only."""
    api_url, path = policy.spec.forge.api_url, policy.repository.path
    credentials = policy.spec.credentials
    if credentials.app is not None:
        minted = await mint(secrets, tokens, namespace, policy, Purpose.LOOK)
        if isinstance(minted, DestinationRefused | Unreadable):
            return minted
        account = f"app {credentials.app.id}"
        value, publishes = minted.token.reveal(), policy.publishes
        return ForgeTarget(api_url, path, value, account, minted=True, publishes=publishes)
    if credentials.push is None:
        return ForgeTarget(api_url, path, None)
    reference = credentials.push.secret_ref
    found = await _value(secrets, namespace, reference, "the push token")
    if isinstance(found, DestinationRefused | Unreadable):
        return found
    redactor.register(found.reveal())
    return ForgeTarget(api_url, path, found.reveal(), f"{namespace}/{reference.name}")


async def mint(
    secrets: Secrets,
    tokens: ForgeTokens,
    namespace: str,
    policy: ResolvedPolicy,
    purpose: Purpose,
    before: Before = nothing_before,
) -> Minted | DestinationRefused | Unreadable:
    """Mint a token of the policy's App for its repository; only where the policy has one."""
    app = policy.spec.credentials.app
    assert app is not None, "the caller looked for an App in the policy"
    key = await _value(secrets, namespace, app.private_key_ref, "the App's private key")
    if isinstance(key, DestinationRefused | Unreadable):
        return key
    grant = AppGrant(
        namespace=namespace,
        api_url=policy.spec.forge.api_url,
        repository=policy.repository.path,
        app_id=app.id,
        key=key,
        where=_words(app.private_key_ref),
        publishes=policy.publishes,
    )
    return await tokens.mint(grant, purpose, before)


async def _value(
    secrets: Secrets, namespace: str, reference: KeyRef, what: str
) -> SecretText | DestinationRefused | Unreadable:
    where = _words(reference)
    answer = await secrets.get(SECRETS, namespace, reference.name)
    if isinstance(answer, Unknown):
        return Unreadable("cluster", answer.cause, answer.retry_after)
    if isinstance(answer, Denied):
        return DestinationRefused(
            f"the operator may not read {where} of {what}; "
            "add its name to the chart's credentials.secretNames"
        )
    text = _text(answer.value, reference.key) if isinstance(answer, Ok) else None
    if not text:
        return DestinationRefused(f"{where} of {what} isn't there; create it")
    return SecretText(text)


def _words(reference: KeyRef) -> str:
    return f"Secret {reference.name}, key {reference.key}"


def _text(raw: Mapping[str, Any], key: str) -> str | None:
    data = decoded((raw.get("data") or {}).get(key))
    return data.decode("utf-8", "replace").strip() if data is not None else None


def decoded(text: object) -> bytes | None:
    """Read the base64 of a Secret or ConfigMap; None if it is none."""
    if not isinstance(text, str):
        return None
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return None
