"""git, work tree, snapshots, promotions, proposals."""
