"""The home of the terminal interface: tasks, runs, and everything that begins there."""
