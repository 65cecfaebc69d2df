"""The journal in status: entries, fold, codec, compaction. Pure."""
