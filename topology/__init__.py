"""The language of "what should exist". Knows nothing of fleetd."""
