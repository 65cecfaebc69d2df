"""The forge's API and the publication."""
