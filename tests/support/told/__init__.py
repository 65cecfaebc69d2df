"""What people read at every end, wait, stall and conflict, in the code's own words.

Each story brings a run to one end or wait through the code that words it; nothing of a text is written
here. Callers: `hack/generate.py` writes them to `tests/golden/messages.txt`, `tests/unit/told` compares.
"""
