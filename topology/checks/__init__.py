"""Checks across documents, one idea per file; `topology.checks.run` runs them all."""
