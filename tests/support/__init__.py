"""Code that several test folders share: fixture servers, scenarios, corpus, helpers."""
