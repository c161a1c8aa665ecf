"""Drives Debian's Chromium over its DevTools protocol, by a pair of pipes: no port, no package but Python's own.

Source: Chromium, --remote-debugging-pipe: messages in JSON on the file descriptors 3 and 4, each ended by a zero byte.
"""
from __future__ import annotations

import base64
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update",
         "--disable-sync", "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe", "--force-color-profile=srgb", "--lang=en-GB")


class Failed(AssertionError):
    """What should hold does not."""


class Browser:
    """One browser with a profile of its own; `with` ends it and removes the profile."""

    def __init__(self) -> None:
        program = shutil.which("chromium")
        if not program:
            raise Failed("chromium is not installed: scripts/install-debian.sh page")
        self._profile = tempfile.mkdtemp(prefix="page-test-")
        ours_out, theirs_in = os.pipe(), os.pipe()
        self._read, self._write = theirs_in[0], ours_out[1]
        environment = {**os.environ, "TZ": "UTC", "HOME": self._profile}

        def place() -> None:
            low, high = os.dup(ours_out[0]), os.dup(theirs_in[1])
            os.dup2(low, 3)
            os.dup2(high, 4)

        self._process = subprocess.Popen([program, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"], preexec_fn=place, close_fds=False,
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, env=environment)
        os.close(ours_out[0])
        os.close(theirs_in[1])
        self._buffer, self._last = b"", 0
        self.events: list[dict] = []
        self._pages: list[Page] = []

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
        shutil.rmtree(self._profile, ignore_errors=True)

    def send(self, method: str, session: str = "", within: float = 30, **params: object) -> dict:
        """Sends a command and returns its result; events that come meanwhile are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": params, **({"sessionId": session} if session else {})}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + within
        while True:
            answer = self._receive(end)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise Failed(f"{method}: {answer['error'].get('message')}")
                return answer["result"]

    def close_pages(self) -> None:
        """One page at a time is looked at: what stands behind it draws nothing."""
        while self._pages:
            page = self._pages.pop()
            if page.is_open:
                page.close()

    def drain(self) -> None:
        """Takes in the events that are there."""
        while select.select([self._read], [], [], 0)[0] or b"\0" in self._buffer:
            self._receive(time.monotonic() + 5)

    def _receive(self, end: float) -> dict:
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], max(0.0, end - time.monotonic()))[0]:
                raise Failed("the browser does not answer")
            piece = os.read(self._read, 1 << 20)
            if not piece:
                raise Failed("the browser has ended")
            self._buffer += piece
        text, self._buffer = self._buffer.split(b"\0", 1)
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message

    def page(self, url: str, width: int = 1280, height: int = 900, dark: bool = False, mobile: bool = False) -> Page:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session, target)
        self._pages.append(page)
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.send(f"{domain}.enable")
        page.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=2 if mobile else 1, mobile=mobile)
        page.send("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        page.send("Page.navigate", url=url)
        return page


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self.browser, self.session, self.target, self.is_open = browser, session, target, True

    def send(self, method: str, **params: object) -> dict:
        return self.browser.send(method, self.session, **params)

    def close(self) -> None:
        self.browser.send("Target.closeTarget", targetId=self.target)
        self.is_open = False

    def run(self, script: str) -> object:
        """The value of an expression; promises are awaited."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True, allowUnsafeEvalBlockedByCSP=False)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failed(f"{script[:80]}: {details.get('exception', {}).get('description', details.get('text'))}")
        return answer["result"].get("value")

    def await_(self, script: str, within: float = 15) -> float:
        """Waits until the expression is true; how long that took."""
        begin = time.monotonic()
        while not self.run(script):
            if time.monotonic() - begin > within:
                raise Failed(f"not within {within:g} s: {script}")
            time.sleep(0.01)
        return time.monotonic() - begin

    def press(self, key: str, code: int = 0, text: str = "") -> None:
        for kind in ("keyDown", "keyUp"):
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **({"text": text} if text and kind == "keyDown" else {}))

    def events(self, method: str) -> list[dict]:
        self.browser.drain()
        return [event["params"] for event in self.browser.events if event["method"] == method and event.get("sessionId") == self.session]

    def picture(self, path: pathlib.Path, whole: bool = False) -> None:
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole, optimizeForSpeed=False)["data"]
        path.write_bytes(base64.b64decode(data))


def check(holds: object, what: str) -> None:
    if not holds:
        raise Failed(what)
