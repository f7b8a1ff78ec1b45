"""The settings: which there are and what they hold (`settings`), and which value of each holds (`resolution`)."""
