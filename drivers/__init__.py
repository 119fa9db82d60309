"""One folder per system that fleetd drives. They know the vocabulary and nothing else of fleetd."""
