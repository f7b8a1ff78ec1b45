"""Parts that screens share: base class, keys, widgets, dialogs, palette, background work, judging."""
