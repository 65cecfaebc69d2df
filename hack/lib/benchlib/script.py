"""A shell script that runs commands one after the other and notes the time after each part.

Callers: `benchlib.replaying`, `hack/bench/replay.py`. It is as plain as a person would write it: no
journal, no look at an output, nothing kept. A status other than the expected one ends it.
"""

import asyncio
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.ordinary_user import as_ordinary_user, owned_by_ordinary_user


@dataclass(frozen=True, slots=True)
class Part:
    """One part of a script and how long it took."""

    name: str
    seconds: float


class Script:
    """Lines of a script that works below `root`; `run` runs it there as an ordinary user."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._count = 0
        self._lines = ["set -u", f"mkdir -p {root}/output", "set -e"]
        self.part("begin")

    def line(self, *words: str | Path) -> None:
        """Add one command of the shell's own, with quoted words."""
        self._lines.append(shlex.join(map(str, words)))

    def unless_there(self, path: Path | str, *lines: Sequence[str | Path]) -> None:
        """Add commands that make something, if it isn't there yet."""
        commands = " && ".join(shlex.join(map(str, words)) for words in lines)
        self._lines.append(f"[ -e {shlex.quote(str(path))} ] || {{ {commands}; }}")

    def write(self, path: Path | str, text: str) -> None:
        """Add the writing of a short file."""
        self._lines.append(f"printf %s {shlex.quote(text)} > {shlex.quote(str(path))}")

    def command(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        workdir: Path | str,
        exit_code: int = 0,
    ) -> None:
        """Add a program with exactly this environment; its output goes to a file of its own."""
        self._count += 1
        words = ["env", "-i", *(f"{key}={value}" for key, value in env.items()), *argv]
        output = shlex.quote(str(self._root / "output" / f"{self._count}"))
        wrong = f"command {self._count} ended with $code, not {exit_code}"
        self._lines += [
            f"cd {shlex.quote(str(workdir))}",
            f"code=0; {shlex.join(words)} > {output} 2>&1 || code=$?",
            f'[ $code -eq {exit_code} ] || {{ echo "{wrong}"; tail -n 20 {output}; exit 1; }}',
        ]

    def part(self, name: str) -> None:
        """Note that a part ends here."""
        self._lines.append(f"echo {shlex.quote(name)} $(date +%s%N) >> {self._root}/times")

    @property
    def text(self) -> str:
        """The whole script."""
        return "\n".join([*self._lines, ""])

    async def run(self) -> tuple[Part, ...]:
        """Run it to its end; an AssertionError tells where it stopped."""
        owned_by_ordinary_user(self._root)
        file = self._root / "script.sh"
        file.write_text(self.text)
        process = await asyncio.create_subprocess_exec(
            *as_ordinary_user(["/bin/sh", str(file)]),
            cwd=self._root,
            env={"PATH": "/usr/bin:/bin"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            said, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        assert process.returncode == 0, f"{file.name}: {said.decode(errors='replace')}"
        return _parts((self._root / "times").read_text())


def _parts(text: str) -> tuple[Part, ...]:
    rows = [line.rpartition(" ") for line in text.splitlines()]
    times = [int(nanoseconds) for _, _, nanoseconds in rows]
    return tuple(
        Part(name, (after - before) / 1e9)
        for (name, _, _), before, after in zip(rows[1:], times, times[1:], strict=False)
    )
