"""Act: look at the world, carry plans out, survive. Decides nothing that a plan has not said."""
