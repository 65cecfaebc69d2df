"""Read a nonce file and tell which Python this is. Started with `python -I probe.py NONCE_FILE`."""

import json
import os
import platform
import sys
from pathlib import Path


def libc() -> tuple[str, str]:
    """Name the C library and its version, as wheel tags need them."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        name, version = "", ""
    if name == "glibc" and version:
        return name, version
    return "other", "0.0"


def main() -> int:
    """Write one JSON object."""
    name, version = libc()
    answer = {
        "nonce": Path(sys.argv[1]).read_text(encoding="utf-8"),
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "machine": platform.machine(),
        "libc": name,
        "libc_version": version,
    }
    sys.stdout.write(json.dumps(answer))
    return 0


if __name__ == "__main__":
    sys.exit(main())
