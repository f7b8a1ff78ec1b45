"""Topics beside their gold: the common parts of the screen of topics and of the compare screen."""
