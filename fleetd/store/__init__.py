"""Remember: intents, outcomes, conditions, events. Never a secret."""
