"""Make the pictures of the report in docs/images from the sample of nlps in a real browser: `make pictures`.

python scripts/report_pictures.py

They show the report in both colour schemes. No test compares them, because fonts depend on the machine.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from selenium import webdriver

import searchapp

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SAMPLE = Path(searchapp.__file__).parent / "samples" / "nlps"
WIDTH, HEIGHT = 1040, 1180
PICTURES = {"light": IMAGES / "report.png", "dark": IMAGES / "report-dark.png"}


def report(folder: Path) -> Path:
    """Make the report of two runs of the sample."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEARCHAPP_")}

    def run(*words: str) -> None:
        command = [sys.executable, "-m", "searchapp", *words, "--quiet", "--home", str(folder / "home")]
        subprocess.run(command, check=True, env=environment, cwd=folder)

    run("index", "nlps", "--data", str(SAMPLE))
    for recipe in ("bm25", "neighbours"):
        run("rank", "nlps", "--split", "dev", "--recipe", recipe, "--depth", "50", "--out", recipe)
    run("report", "bm25", "neighbours", "--cutoff", "50", "--out", "report.html")
    return folder / "report.html"


def screenshots(page: Path) -> dict[str, bytes]:
    """Return the top of a page as PNG in each colour scheme."""
    options = webdriver.ChromeOptions()
    browser, driver = (shutil.which(name) for name in ("chromium", "chromedriver"))
    if not browser or not driver:
        sys.exit("there is no Chromium with its driver: install them (Debian: chromium, chromium-driver)")
    options.binary_location = browser
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--window-size={WIDTH},{HEIGHT}"):
        options.add_argument(option)
    chrome = webdriver.Chrome(options, webdriver.ChromeService(driver))
    try:
        result = {}
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
        for scheme in PICTURES:
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            chrome.get(page.as_uri())
            shot = chrome.execute_cdp_cmd(
                "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip}
            )
            result[scheme] = base64.b64decode(shot["data"])
        return result
    finally:
        chrome.quit()


def main() -> None:
    """Write the pictures."""
    with tempfile.TemporaryDirectory(prefix="searchapp-report-") as folder:
        for scheme, picture in screenshots(report(Path(folder))).items():
            PICTURES[scheme].write_bytes(picture)
            print(PICTURES[scheme].relative_to(IMAGES.parents[1]))


if __name__ == "__main__":
    main()
