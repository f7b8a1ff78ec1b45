"""The parts of the screens: screen base, keys, widgets, dialogs, palette, background work, judging."""
