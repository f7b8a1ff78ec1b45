"""What the screens are made of: screen base, keys, widgets, dialogs, palette, background work, judging."""
