"""A headless Chromium, told what to do over its debugging pipe. Needs nothing but the browser."""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


def find():
    """The path of a Chromium, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return shutil.which(name)
    return None


class Browser:
    """One page at a time; `events` are all messages of the browser that answer nothing."""

    def __init__(self, path, seconds=120):
        self._seconds = seconds
        self._folder = tempfile.mkdtemp()
        read, self._out = os.pipe()
        self._in, write = os.pipe()

        def place(read, write):
            """The browser reads from its descriptor 3 and writes to 4."""
            high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (read, write)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self._process = subprocess.Popen(
            [path, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe",
             "--no-first-run", f"--user-data-dir={self._folder}", "about:blank"],
            pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=lambda: place(read, write))
        os.close(read)
        os.close(write)
        self._buffer = b""
        self._last = 0
        self._session = None
        self.events = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        # Its children end a little later, and may still write there.
        shutil.rmtree(self._folder, ignore_errors=True)

    def _receive(self, until):
        while b"\0" not in self._buffer:
            if not select.select([self._in], [], [], max(0, until - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            data = os.read(self._in, 1 << 20)
            if not data:
                raise EOFError("the browser is gone")
            self._buffer += data
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **params):
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + self._seconds
        while True:
            answer = self._receive(until)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression):
        """The value of an expression in the page; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def open(self, path):
        """Opens a file and waits until the page says that it is drawn; the seconds that took."""
        self.events.clear()
        began = time.monotonic()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        while not self.evaluate("document.body?.dataset.drawn === 'yes'"):
            if time.monotonic() - began > self._seconds:
                raise TimeoutError("the page is not drawn")
            time.sleep(0.02)
        return time.monotonic() - began

    def look(self, width, height, dark=False, phone=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=phone)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key,
                      **({"text": key} if len(key) == 1 and kind == "keyDown" else {}))

    def picture(self, path, whole=True):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))

    def requests(self):
        """Addresses that the page asked for, but for its own."""
        urls = [e["params"]["request"]["url"] for e in self.events
                if e.get("method") == "Network.requestWillBeSent"]
        return urls[1:]

    def complaints(self):
        """Errors and warnings of the console, exceptions, and what the policy stopped."""
        found = []
        for e in self.events:
            params = e.get("params", {})
            if e.get("method") == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            elif e.get("method") == "Log.entryAdded":
                found.append(params["entry"]["text"])
            elif e.get("method") == "Runtime.consoleAPICalled":
                found.append(str(params["args"]))
        return found
