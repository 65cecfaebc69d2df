"""The loop that decides, and who decides in it."""
