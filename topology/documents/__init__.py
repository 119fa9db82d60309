"""The documents a user writes, as pydantic models: one source for checks, schemas and CRDs."""
