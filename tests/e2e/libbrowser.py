# SPDX-License-Identifier: BSD-2-Clause
"""A headless Chromium for tests that look at what a person would see: pages, pictures, the console.

It is spoken to over a pipe (--remote-debugging-pipe: JSON messages that end with NUL), so no port is
opened and no WebSocket library is needed. Nothing is fetched: every host name resolves to nowhere.
"""
import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

from libe2e import Skip


class PageError(Exception):
    """What a page threw, or what the browser answered."""


def program():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    raise Skip("no chromium: tools/install-deps.sh test installs it")


class Browser:
    """`with Browser() as browser: page = browser.page("file:///…")`"""

    def __init__(self, *flags, offline=True, width=1280, height=800):
        self.profile = tempfile.mkdtemp(prefix="browser-")
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()
        # the browser takes 3 for its input and 4 for its output
        to_read, back_write = (os.dup(fd) if fd in (3, 4) else fd for fd in (to_read, back_write))

        def descriptors():
            read, write = os.dup(to_read), os.dup(back_write)
            while read in (3, 4):
                read = os.dup(read)
            while write in (3, 4):
                write = os.dup(write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        command = [program(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
                   "--disable-dev-shm-usage", "--disable-extensions", "--mute-audio",
                   "--disable-background-networking", "--disable-component-update",
                   "--force-color-profile=srgb", "--hide-scrollbars",
                   f"--window-size={width},{height}", f"--user-data-dir={self.profile}",
                   "--remote-debugging-pipe", *flags]
        if offline:
            command.append("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, "
                           "EXCLUDE localhost")
        self.process = subprocess.Popen(
            command + ["about:blank"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=descriptors,
            start_new_session=True)
        os.close(to_read)
        os.close(back_write)
        self.number, self.rest, self.events = 0, b"", []
        self.call("Browser.getVersion")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """End it and all its children."""
        if self.process.poll() is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()
        os.close(self.to)
        os.close(self.back)
        shutil.rmtree(self.profile, ignore_errors=True)

    def _message(self, until):
        while b"\0" not in self.rest:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self.back], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self.back, 1 << 20)
            if not data:
                raise PageError("the browser ended")
            self.rest += data
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, timeout=60, **parameters):
        """One command of the DevTools protocol; its result."""
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        until = time.monotonic() + timeout
        while True:
            answer = self._message(until)
            if answer.get("id") == number:
                if "error" in answer:
                    raise PageError(f"{method}: {answer['error']}")
                return answer["result"]
            if "method" in answer:
                self.events.append(answer)

    def page(self, url, timeout=60):
        return Page(self, url, timeout)

    def trace(self, timeout=60):
        """End a trace (Tracing.start); the stream that has it."""
        self.call("Tracing.end")
        until = time.monotonic() + timeout
        while True:
            for event in self.events:
                if event["method"] == "Tracing.tracingComplete":
                    self.events.remove(event)
                    return event["params"]["stream"]
            message = self._message(until)
            if "method" in message:
                self.events.append(message)


_shared = None


def shared():
    """One browser for all cases of a test, which closes it at its end."""
    global _shared
    if not _shared:
        _shared = Browser()
    return _shared


def close_shared():
    if _shared:
        _shared.close()


class Page:
    """A tab. `console` has what the page wrote and threw so far (after a call of messages())."""

    def __init__(self, browser, url, timeout):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target,
                                    flatten=True)["sessionId"]
        self.target = target
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete'", timeout)

    def call(self, method, timeout=60, **parameters):
        return self.browser.call(method, self.session, timeout, **parameters)

    def evaluate(self, expression, timeout=60):
        """The value of a JavaScript expression; promises are awaited. What it throws is a PageError."""
        result = self.call("Runtime.evaluate", timeout, expression=expression, awaitPromise=True,
                           returnByValue=True, userGesture=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise PageError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def wait(self, expression, timeout=60):
        """Until the expression is true."""
        until = time.monotonic() + timeout
        while True:
            try:
                if self.evaluate(expression):
                    return
            except PageError:
                pass  # the page is being replaced
            if time.monotonic() > until:
                raise TimeoutError(f"never true: {expression}")
            time.sleep(0.05)

    def key(self, key, code=None, text=None, modifiers=0):
        """Press and release a key: "Escape", "ArrowLeft", "f"."""
        text = text if text is not None else (key if len(key) == 1 else "")
        event = {"key": key, "code": code or (f"Key{key.upper()}" if len(key) == 1 else key),
                 "modifiers": modifiers}
        down = dict(event, text=text) if text else event
        self.call("Input.dispatchKeyEvent", type="keyDown", **down)
        self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def mouse(self, kind, x, y, button="none", buttons=0, clicks=0, **more):
        """kind: mouseMoved, mousePressed, mouseReleased or mouseWheel (deltaX, deltaY)."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=buttons,
                  clickCount=clicks, **more)

    def click(self, x, y, clicks=1):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, "left", 1, clicks)
        self.mouse("mouseReleased", x, y, "left", 0, clicks)

    def drag(self, x1, y1, x2, y2, **more):
        self.mouse("mouseMoved", x1, y1, **more)
        self.mouse("mousePressed", x1, y1, "left", 1, 1, **more)
        for step in range(1, 6):
            self.mouse("mouseMoved", x1 + (x2 - x1) * step / 5, y1 + (y2 - y1) * step / 5,
                       "left", 1, **more)
        self.mouse("mouseReleased", x2, y2, "left", 0, 1, **more)

    def dark(self, on=True):
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def screenshot(self, path):
        png = self.call("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(png))

    def messages(self):
        """What the page wrote to the console, threw, or could not load, as texts."""
        self.evaluate("0")  # whatever was on its way has come then
        texts = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            method, p = event["method"], event["params"]
            if method == "Runtime.exceptionThrown":
                details = p["exceptionDetails"]
                texts.append("threw: " + details.get("exception", {}).get(
                    "description", details["text"]))
            elif method == "Runtime.consoleAPICalled":
                texts.append(f"{p['type']}: " + " ".join(
                    str(a.get("value", a.get("description", ""))) for a in p["args"]))
            elif method == "Log.entryAdded":
                texts.append(f"{p['entry']['level']}: {p['entry']['text']}")
        return texts

    def requests(self):
        """The URLs that the page requested."""
        self.evaluate("0")
        return [e["params"]["request"]["url"] for e in self.browser.events
                if e.get("sessionId") == self.session
                and e["method"] == "Network.requestWillBeSent"]

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
