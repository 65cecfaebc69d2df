"""Between handlers and reconcile: the work queue, deadlines, resync, leadership, the kopf thread."""
