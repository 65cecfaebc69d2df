"""The endpoints that runners and publishers call."""
