"""Programs that sandbox commands start with `python -I`; nothing imports them."""
