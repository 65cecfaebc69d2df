"""What is special about Python (and later Go and npm)."""
