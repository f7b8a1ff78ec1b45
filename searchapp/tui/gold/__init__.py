"""Topics beside their gold: common parts of the screen of topics and the compare screen."""
