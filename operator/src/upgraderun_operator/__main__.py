"""What the image starts: hears SIGTERM from its first moment, then loads the program.

The kernel drops a signal that the first process of a container has no handler for, and imports take
seconds. A replica whose pod was deleted meanwhile worked on until its grace period was over.
"""

import os
import signal

_ENDED = 128 + signal.SIGTERM

# Nothing is held yet. The program puts its own handler in place of this one.
signal.signal(signal.SIGTERM, lambda *_: os._exit(_ENDED))

from upgraderun_operator.main import main  # noqa: E402 - what takes the seconds

if __name__ == "__main__":
    main()
