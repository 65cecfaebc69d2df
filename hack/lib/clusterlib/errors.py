"""The one error that people see: what happened, to what, and what to do next.

Callers: every module here raises it; only the command line catches it.
"""


class ClusterError(Exception):
    """Something that the person at the keyboard has to know; the text is the whole message."""
