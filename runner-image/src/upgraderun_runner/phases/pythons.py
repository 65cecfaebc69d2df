"""Is this the image whose Python the project takes? Else the attempt parks itself for another (§6, §8.1).

Caller: phase 3. With sandbox Inline the project's Python is the one beside the runner, and only the runner
knows `requires-python`; so the operator starts the next attempt from the image that was chosen.
"""

from upgraderun_protocol.ends import YieldReason
from upgraderun_runner.ecosystems.base import ProjectProfile, Refusal
from upgraderun_runner.ecosystems.python.refusals import MANIFEST
from upgraderun_runner.errors import Yielded
from upgraderun_runner.phases.ends import unsupported
from upgraderun_runner.phases.session import PhaseStep, Session


async def require_python(session: Session, step: PhaseStep, profile: ProjectProfile) -> None:
    """Raise Yielded if another image is needed, RunEnds if the policy names a wrong one for it."""
    wanted, have = profile.image.version, session.python
    if ".".join(wanted.split(".")[:2]) == have:
        return
    if session.bundle.python == wanted:
        refusal = Refusal(
            "image_mismatch",
            MANIFEST,
            f"the image of images.python {wanted} holds Python {have}",
            "build that image on the Python that it is listed for, or mend the policy's images.python",
        )
        raise await step.ends(unsupported((refusal,)))
    raise Yielded(
        YieldReason.ANOTHER_PYTHON,
        f"requires-python {profile.requires_toolchain} takes Python {wanted}; this image holds {have}",
        python=wanted,
    )
