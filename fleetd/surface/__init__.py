"""Show: HTTP, metrics, logs. Readers only."""
