"""Debian's Chromium, driven over HTTP as the WebDriver standard says. Every wait is bounded."""
import base64
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import zlib

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Space": "\ue00d"}


def wait_for(what, condition, seconds=10.0):
    """The first true value of condition(), asked again and again."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(0.05)


class Browser:
    def __init__(self):
        for program in ("chromium", "chromedriver"):
            if not shutil.which(program):
                raise SystemExit(f"{program} is not installed: tools/install_packages.sh installs it")
        self.folder = tempfile.mkdtemp(prefix="syncopate-page-")
        self.downloads = os.path.join(self.folder, "downloads")
        os.mkdir(self.downloads)
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                       text=True, cwd=self.folder)
        self.session = None
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self):
        port = None
        for line in self.driver.stdout:
            found = re.search(r"started successfully on port (\d+)", line)
            if found:
                port = found[1]
                break
        if port is None:
            raise AssertionError("chromedriver did not start")
        self.base = f"http://127.0.0.1:{port}"
        options = {
            "binary": shutil.which("chromium"),
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
                     "--disable-component-update", "--no-first-run", "--hide-scrollbars", "--disable-dev-shm-usage",
                     "--force-prefers-reduced-motion", f"--user-data-dir={self.folder}/profile"],
            "prefs": {"download.default_directory": self.downloads, "download.prompt_for_download": False,
                      "profile.default_content_setting_values.automatic_downloads": 1},
        }
        capabilities = {"browserName": "chrome", "goog:chromeOptions": options,
                        "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"}}
        answer = self._send("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}}, seconds=40)
        self.session = answer["sessionId"]
        self._command("POST", "/timeouts", {"script": 15000, "pageLoad": 20000})

    def _send(self, method, path, body=None, seconds=25):
        data = None if method == "GET" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=seconds) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {json.load(error)['value']['message'].splitlines()[0]}") from None

    def _command(self, method, path, body=None):
        return self._send(method, f"/session/{self.session}{path}", body)

    def open(self, address):
        self._command("POST", "/url", {"url": address})

    def run(self, script, *arguments):
        """What a function with this body returns."""
        return self._command("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def devtools(self, command, parameters):
        return self._command("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def find(self, selector):
        return self._command("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        self._command("POST", f"/element/{self.find(selector)}/click")

    def type(self, selector, text):
        self._command("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def press(self, key):
        code = KEYS[key]
        actions = [{"type": "keyDown", "value": code}, {"type": "keyUp", "value": code}]
        self._command("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def size(self, width, height=900):
        # The window cannot be as narrow as a phone; the page's view can.
        self.devtools("Emulation.setDeviceMetricsOverride",
                      {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def picture(self, selector, scale=0.5):
        """What an element looks like: (width, height, rows of RGB or RGBA bytes, bytes in a pixel)."""
        box = self.run(
            """const element = document.querySelector(arguments[0]);
            element.scrollIntoView({block: 'center'});
            const {x, y, width, height} = element.getBoundingClientRect();
            return {x: x + scrollX, y: y + scrollY, width, height};""", selector)
        shot = self.devtools("Page.captureScreenshot", {"format": "png", "clip": {**box, "scale": scale}})
        return pixels(base64.b64decode(shot["data"]))

    def log(self, kind):
        return self._command("POST", "/se/log", {"type": kind})

    def downloaded(self, name):
        path = os.path.join(self.downloads, name)
        wait_for(f"the download of {name}", lambda: os.path.exists(path) and os.path.getsize(path) > 0)
        with open(path, "rb") as file:
            return file.read()

    def close(self):
        if self.session:
            try:
                self._command("DELETE", "")
            except (AssertionError, OSError):
                pass
        self.driver.terminate()
        try:
            self.driver.wait(10)
        except subprocess.TimeoutExpired:
            self.driver.kill()
            self.driver.wait(10)
        self.driver.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def pixels(png):
    """Decodes what Chromium writes: 8 bits, RGB or RGBA, not interlaced."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n", "not a PNG"
    at, packed = 8, b""
    while at < len(png):
        length, kind = struct.unpack(">I4s", png[at:at + 8])
        body = png[at + 8:at + 8 + length]
        at += 12 + length
        if kind == b"IHDR":
            width, height, bits, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert bits == 8 and colour in (2, 6) and not interlaced, "an unusual PNG"
        elif kind == b"IDAT":
            packed += body
    size = 3 if colour == 2 else 4
    raw = zlib.decompress(packed)
    stride = width * size
    rows, before = [], bytearray(stride)
    for y in range(height):
        start = y * (stride + 1)
        row = unfiltered(raw[start], bytearray(raw[start + 1:start + 1 + stride]), before, size)
        rows.append(row)
        before = row
    return width, height, rows, size


def unfiltered(kind, row, above, size):
    if kind == 2:
        return bytearray((a + b) & 255 for a, b in zip(row, above))
    for i in range(len(row) if kind else 0):
        left = row[i - size] if i >= size else 0
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + above[i]) >> 1
        else:
            corner = above[i - size] if i >= size else 0
            near = left + above[i] - corner
            guess = min((left, above[i], corner), key=lambda each: abs(near - each))
        row[i] = (row[i] + guess) & 255
    return row


def ink(picture):
    """The share of pixels that are not background, and the number of colours that cover at least four of them."""
    _, _, rows, size = picture
    counts = {}
    for row in rows:
        for i in range(0, len(row), size):
            colour = bytes(row[i:i + 3])
            counts[colour] = counts.get(colour, 0) + 1
    background = max(counts.values())
    everything = sum(counts.values())
    return 1 - background / everything, sum(1 for each in counts.values() if each >= 4)
