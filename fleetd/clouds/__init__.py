"""How fleetd speaks to the APIs of an OpenStack cloud."""
