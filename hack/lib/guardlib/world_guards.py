"""Guards of what stands outside: whose an object is, what a push may do, who works on a repository.

Callers: `guardlib.table`.
"""

from typing import Final

from guardlib.removal import Guard

GUARDS: Final[tuple[Guard, ...]] = ()
