"""Where commands run: the drivers."""
