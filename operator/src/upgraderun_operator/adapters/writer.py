"""The only door to status: compare-and-set with guards, projections and our own mark (§1.3).

    newest view ── guards ── change ── PUT (resourceVersion, UID, write.id) ── Done
        ^             |                        |
        |             | failed on a cached     | 409, or no answer: unknown
        |             v view                   v
        └── quorum read from the API server itself: own write.id there? then Done

Never the same body with a newer resourceVersion: after each read guards are evaluated and the
change is computed again. At most WRITE_TRIES PUTs. Callers: by protocol, everyone who writes a run.
"""
