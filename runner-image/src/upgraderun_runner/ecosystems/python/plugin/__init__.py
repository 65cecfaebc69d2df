"""The folder that goes on PYTHONPATH of pytest: nothing but the report plug-in."""
