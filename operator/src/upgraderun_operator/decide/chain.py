"""Chains: rules with names, in order, the first answer wins (house style, point 3).

A rule is a function with one sentence as docstring; `docs/decisions.md` is rendered from them, so
the page can't differ from the code. Callers: the modules of `decide`, `hack/decisions.py`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from upgraderun_operator.decide.decision import Decision
from upgraderun_operator.decide.observation import Observation

Rule = Callable[[Observation], Decision | None]
Condition = Callable[[Observation], bool]


@dataclass(frozen=True, slots=True)
class Chain:
    """Rules in order, asked only where `when` holds. `title` is the question that it answers."""

    name: str
    title: str
    when: Condition
    rules: tuple[Rule, ...]

    def __call__(self, seen: Observation) -> Decision | None:
        """Give the first answer, marked with chain and rule; None if no rule answers."""
        if not self.when(seen):
            return None
        for rule in self.rules:
            decision = rule(seen)
            if decision is not None:
                name = f"{self.name}.{rule_name(rule)}"
                return decision if decision.rule else replace(decision, rule=name)
        return None

    def walk(self) -> Iterator["Chain"]:
        """This chain and those it leads to, in order of first mention."""
        yield self
        for rule in self.rules:
            if isinstance(rule, Chain):
                yield from rule.walk()


def rule_name(rule: Rule) -> str:
    """Name of a rule or chain as docs and logs spell it."""
    return rule.name if isinstance(rule, Chain) else rule.__name__


def sentence(function: Rule | Condition) -> str:
    """First line of a docstring; for a chain, the condition under which it is asked."""
    source = function.when if isinstance(function, Chain) else function
    return (source.__doc__ or "").strip().splitlines()[0]


def render(chain: Chain) -> str:
    """Write every chain as a numbered list in Markdown."""
    parts: dict[str, str] = {}
    for part in chain.walk():
        lines = [f"## {part.name}", "", f"{part.title} {sentence(part)}", ""]
        for number, rule in enumerate(part.rules, 1):
            link = f"[{rule_name(rule)}](#{rule_name(rule)})"
            name = link if isinstance(rule, Chain) else f"`{rule_name(rule)}`"
            lines.append(f"{number}. {name}: {sentence(rule)}")
        parts.setdefault(part.name, "\n".join(lines) + "\n")
    return "\n".join(parts.values())
