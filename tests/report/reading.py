"""A real browser that opens a report and measures it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.serving.browser import KEYS, Browser

# The contrast of visible text with its background by WCAG 2.2, section 1.4.3.
_CONTRASTS = """
const luminance = (colour) => {
  const [red, green, blue] = colour.match(/[\\d.]+/g).slice(0, 3)
    .map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
};
const background = (element) => {
  for (; element; element = element.parentElement) {
    const colour = getComputedStyle(element).backgroundColor;
    if (!colour.endsWith(", 0)")) return colour;
  }
  return "rgb(255, 255, 255)";
};
const contrasts = {};
for (const element of document.body.querySelectorAll("*")) {
  const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || !element.getClientRects().length || element.closest("title")) continue;
  const style = getComputedStyle(element);
  const colour = element instanceof SVGElement ? style.fill : style.color;
  const [dark, bright] = [luminance(colour), luminance(background(element))].sort();
  const contrast = (bright + 0.05) / (dark + 0.05);
  const name = `${element.tagName} ${colour} on ${background(element)}`;
  contrasts[name] = Math.min(contrast, contrasts[name] ?? 99);
}
return contrasts;
"""


class Reader(Browser):
    """Chromium that opens files."""

    def read(self, path: Path, scheme: str = "light", media: str = "screen") -> None:
        """Open a report with a colour scheme, for the screen or for print."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self._driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})
        self.open(path.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script in the page and return its result."""
        return self._driver.execute_script(script, *arguments)

    @property
    def requests(self) -> list[str]:
        """The URLs that the page has requested."""
        requests: list[str] = self.run(
            "return performance.getEntriesByType('resource').map((entry) => entry.name)"
        )
        return requests

    @property
    def focused(self) -> str:
        """The label or the text of the element with the focus."""
        script = (
            "const at = document.activeElement; return at.getAttribute('aria-label') ?? at.textContent.trim()"
        )
        return str(self.run(script))

    @property
    def contrasts(self) -> dict[str, float]:
        """The lowest contrast of text, for each element name, colour and background."""
        contrasts: dict[str, float] = self.run(_CONTRASTS)
        return contrasts

    def type(self, *keys: str) -> None:
        """Send keys to the element with the focus."""
        for key in keys:
            self._driver.switch_to.active_element.send_keys(KEYS.get(key, key))

    def printed(self) -> bytes:
        """Print to a PDF file and return it in base64."""
        return str(self._driver.execute_cdp_cmd("Page.printToPDF", {})["data"]).encode()
