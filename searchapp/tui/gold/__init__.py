"""Topics beside their gold: what the screen of a run's topics and the screen that compares runs have in common."""
