"""The kinds as pydantic models: the CRDs are generated from here."""
