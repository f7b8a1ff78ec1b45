"""Screens and prompts, which call the same functions as the commands."""

import os

# Textual reads this when it is imported. With its default of 60, an answer that arrives just after a frame would wait
# for up to two frames. Textual draws only changes, so a higher rate costs nothing while nothing changes.
os.environ.setdefault("TEXTUAL_FPS", "240")
