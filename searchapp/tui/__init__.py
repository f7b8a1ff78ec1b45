"""The interfaces for people at a terminal: screens and prompts, which call the same functions as the command line."""

import os

# Textual reads it when it is imported. Its own 60 would keep an answer that comes right after a key was drawn waiting
# for up to two frames; only what has changed is drawn, so that more frames are drawn only where something happens.
os.environ.setdefault("TEXTUAL_FPS", "240")
