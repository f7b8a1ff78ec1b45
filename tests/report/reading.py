"""A real browser that reads a report, and what a test wants to know of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.serving.browser import KEYS, Browser

# Text that can be seen, with what it stands on: the contrast is that of WCAG 2.2, section 1.4.3.
_CONTRASTS = """
const luminance = (colour) => {
  const [red, green, blue] = colour.match(/[\\d.]+/g).slice(0, 3)
    .map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const ground = (element) => {
  for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor;
    if (!colour.endsWith(", 0)")) return colour;
  }
  return "rgb(255, 255, 255)";
};
const found = {};
for (const element of document.body.querySelectorAll("*")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || !element.getClientRects().length || element.closest("title")) continue;
  const style = getComputedStyle(element);
  const colour = element instanceof SVGElement ? style.fill : style.color;
  const [one, other] = [luminance(colour), luminance(ground(element))].sort();
  const contrast = (other + 0.05) / (one + 0.05);
  const name = `${element.tagName} ${colour} on ${ground(element)}`;
  found[name] = Math.min(contrast, found[name] ?? 99);
}
return found;
"""


class Reader(Browser):
    """Chromium that opens a file."""

    def read(self, path: Path, scheme: str = "light", media: str = "screen") -> None:
        """Open a report, in a colour scheme, on the screen or as it is printed."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
        self.open(path.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns that is run beside the page's own."""
        return self._driver.execute_script(script, *arguments)

    @property
    def requests(self) -> list[str]:
        """The addresses that the page has asked for besides its own."""
        asked: list[str] = self.run("return performance.getEntriesByType('resource').map((one) => one.name)")
        return asked

    @property
    def focused(self) -> str:
        """The words of what has the focus, or its label."""
        script = (
            "const at = document.activeElement; return at.getAttribute('aria-label') ?? at.textContent.trim()"
        )
        return str(self.run(script))

    @property
    def contrasts(self) -> dict[str, float]:
        """The least contrast of text in each colour on each ground."""
        found: dict[str, float] = self.run(_CONTRASTS)
        return found

    def type(self, *keys: str) -> None:
        """Press keys where the focus is."""
        for key in keys:
            self._driver.switch_to.active_element.send_keys(KEYS.get(key, key))

    def printed(self) -> bytes:
        """The pages that would come out of a printer, as base64 of a PDF file."""
        return str(self._driver.execute_cdp_cmd("Page.printToPDF", {})["data"]).encode()
