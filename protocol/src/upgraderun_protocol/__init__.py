"""What operator, runner and publisher share. Pure: standard library only, no I/O."""
