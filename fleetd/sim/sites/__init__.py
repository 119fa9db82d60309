"""What exists in a region before fleetd comes; one file per part."""
