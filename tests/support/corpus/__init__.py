"""Real libraries with known right answers, rebuilt from the package registry.

A case is a released sdist plus a few commands; no third-party code is committed. `build_case()`
makes its repository in a cache outside the checkout, `publish()` puts it on a fixture host. Used by
the tests that talk to the real registry and by the demo.
"""

from support.corpus.cases import CASES, case
from support.corpus.declared import Answer, Case
from support.corpus.rebuild import BuiltCase, build_case

__all__ = ["CASES", "Answer", "BuiltCase", "Case", "build_case", "case"]
