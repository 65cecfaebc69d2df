"""Chains: rules with names, in order, the first answer wins (house style, point 3).

A rule is a function with one sentence as docstring; `docs/decisions.md` is rendered from them, so
the page can't differ from the code. Callers: the modules of `decide`, `build.decisions_page`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from upgraderun_operator.decide.decision import Decision
from upgraderun_operator.decide.observation import Observation

Rule = Callable[[Observation], Decision | None]


@dataclass(frozen=True, slots=True)
class Chain:
    """Rules in order. `title` says which question the chain answers."""

    name: str
    title: str
    rules: tuple[Rule, ...]

    def __call__(self, seen: Observation) -> Decision | None:
        """Give the first answer, marked with chain and rule; None if no rule answers."""
        for rule in self.rules:
            decision = rule(seen)
            if decision is not None:
                return decision if decision.rule else replace(decision, rule=self._name(rule))
        return None

    def _name(self, rule: Rule) -> str:
        return f"{self.name}.{rule_name(rule)}"

    def walk(self) -> Iterator["Chain"]:
        """This chain and those it leads to, each once, in order."""
        yield self
        for rule in self.rules:
            if isinstance(rule, Chain):
                yield from rule.walk()


def rule_name(rule: Rule) -> str:
    """Name of a rule or chain as docs and logs spell it."""
    return rule.name if isinstance(rule, Chain) else rule.__name__


def rule_sentence(rule: Rule) -> str:
    """First sentence of a rule's docstring, or the title of a chain."""
    if isinstance(rule, Chain):
        return rule.title
    return (rule.__doc__ or "").strip().splitlines()[0]


def render(chain: Chain) -> str:
    """Write every chain as a numbered list in Markdown."""
    parts = []
    for part in chain.walk():
        lines = [f"## {part.name}", "", part.title, ""]
        for number, rule in enumerate(part.rules, 1):
            lines.append(f"{number}. `{rule_name(rule)}`: {rule_sentence(rule)}")
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)
