"""Byte-compile what the project's wheel holds and import each of its top-level packages.

Started in a sandbox as `python build_check.py WHEEL_DIRECTORY PYTHON` in an empty directory. Writes JSON
lines: one per file that doesn't compile, one per import, and a trailer with the counts; exits 1 if one
of them failed (upgrade-run.md §7.1).
"""

from __future__ import annotations

import json
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

IMPORT_SECONDS = 120
MESSAGE_MAX = 500
IMPORT = """
import importlib, json, sys
try:
    importlib.import_module(sys.argv[1])
except BaseException as error:
    text = f"{type(error).__name__}\\n{error}"
    sys.__stderr__.write("\\nUR_IMPORT " + json.dumps(text) + "\\n")
    sys.exit(1)
"""
MARK = "UR_IMPORT "


def write(record: dict[str, object]) -> None:
    """One line per record."""
    sys.stdout.write(json.dumps(record) + "\n")


def compile_sources(wheel: zipfile.ZipFile, names: list[str]) -> bool:
    """Report each source that doesn't compile."""
    good = True
    for name in names:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(wheel.read(name), name, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            text = getattr(error, "msg", None) or str(error)
            write({"kind": "compile", "file": name, "message": text[:MESSAGE_MAX]})
            good = False
    return good


def top_level(names: list[str]) -> list[str]:
    """Name what can be imported: packages that hold Python, and single modules."""
    found = set()
    for name in names:
        first, slash, _ = name.partition("/")
        module = first if slash else first.removesuffix(".py")
        if module.isidentifier() and module != "__init__":
            found.add(module)
    return sorted(found)


def try_import(python: str, module: str) -> bool:
    """Import in a process of its own, which a crash or an exit can't take us down with."""
    record: dict[str, object] = {"kind": "import", "module": module, "exception": "", "message": ""}
    try:
        done = subprocess.run(
            [python, "-c", IMPORT, module],
            capture_output=True,
            timeout=IMPORT_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        record["exception"] = "Timeout"
    else:
        if done.returncode != 0:
            text = done.stderr.decode("utf-8", "replace")
            name, message = told(text) or (f"exit {done.returncode}", text[-MESSAGE_MAX:])
            record["exception"], record["message"] = name, message[:MESSAGE_MAX]
    write(record)
    return not record["exception"]


def told(stderr: str) -> tuple[str, str] | None:
    """Find what the importing process said of its exception."""
    for line in reversed(stderr.splitlines()):
        if line.startswith(MARK):
            name, _, message = json.loads(line.removeprefix(MARK)).partition("\n")
            return name, message
    return None


def main(arguments: list[str]) -> int:
    """Check every wheel of the directory; there is one."""
    directory, python = arguments
    compiled = imported = 0
    good = True
    for path in sorted(Path(directory).glob("*.whl")):
        with zipfile.ZipFile(path) as wheel:
            sources = [
                name
                for name in wheel.namelist()
                if name.endswith(".py") and ".data/" not in name and ".dist-info/" not in name
            ]
            good = compile_sources(wheel, sources) and good
            compiled += len(sources)
        for module in top_level(sources):
            good = try_import(python, module) and good
            imported += 1
    write({"kind": "trailer", "compiled": compiled, "imported": imported})
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
