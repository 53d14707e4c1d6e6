#!/usr/bin/env python3
"""Pictures of a page, for documents and for looking at it.

    tests/page/shoot.py PAGE OUT.png [--width 1440] [--height 900] [--theme dark] [--scale 2]
"""
import argparse
import base64
import pathlib

from browser import Browser, wait_for


def main():
    parser = argparse.ArgumentParser(description="Saves what a page looks like in Chromium.")
    parser.add_argument("page", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--width", type=int, default=1440)
    parser.add_argument("--height", type=int, default=900, help="0: the whole page")
    parser.add_argument("--theme", choices=["light", "dark"], default="light")
    parser.add_argument("--scale", type=float, default=1, help="pixels of the picture for one of the page")
    options = parser.parse_args()
    browser = Browser()
    try:
        browser.devtools("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": options.theme}]})
        browser.size(options.width, options.height or 900)
        browser.open(options.page.resolve().as_uri())
        wait_for("the page", lambda: browser.run("return document.querySelector('main') !== null"))
        height = options.height or browser.run("return document.documentElement.scrollHeight")
        clip = {"x": 0, "y": 0, "width": options.width, "height": height, "scale": options.scale}
        shot = browser.devtools("Page.captureScreenshot", {"format": "png", "clip": clip, "captureBeyondViewport": True})
        options.out.write_bytes(base64.b64decode(shot["data"]))
    finally:
        browser.close()


if __name__ == "__main__":
    main()
