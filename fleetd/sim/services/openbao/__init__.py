"""A simulated OpenBao: its HTTP API, its seal, its members, and policies that are enforced."""
