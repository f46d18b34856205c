"""Two real browsers behind one small interface: Chromium by Playwright, Firefox over WebDriver BiDi.

A page can evaluate an expression, click at a place, press a key and type; it notes errors and requests.
What is checked is written once, against this."""

import itertools, json, re, shutil, subprocess, time

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FIREFOX = next(filter(None, map(shutil.which, ("firefox-esr", "firefox"))), None)


class Unavailable(Exception):
    "Why a browser can't be driven here."


class Page:
    "What both have. `frame` says whether the explorer is inside the page's first frame."

    frame = False

    def until(self, condition, seconds=60):
        "Ask again until it holds: a page's policy forbids what libraries' own waiting does."
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if self.eval(f"Boolean({condition})"):
                    return True
            except Gone:
                pass
            time.sleep(0.05)
        return False

    def spot(self, selector, n=0):
        "The middle of an element, scrolled into view."
        middle = """e => { if (!e) return null; e.scrollIntoView({block: 'nearest', inline: 'nearest'});
            const b = e.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2] }"""
        found = self.eval(f"({middle})(document.querySelectorAll({json.dumps(selector)})[{n}])")
        assert found, f"there is no {selector} {n}"
        return found

    def click(self, selector, n=0):
        self.click_at(*self.spot(selector, n))


class Gone(Exception):
    "An expression couldn't be evaluated (now)."


class ChromiumPage(Page):
    def __init__(self, browser, width, height, **given):
        self.page = browser.new_page(viewport=dict(width=width, height=height), **given)
        self.trouble, self.asked = [], []
        self.page.on("pageerror", lambda e: self.trouble.append(str(e)))
        self.page.on("request", lambda r: self.asked.append(r.url))

    def open(self, url):
        self.page.goto(url)

    @property
    def _inside(self):
        return self.page.frames[1] if self.frame and len(self.page.frames) > 1 else self.page.main_frame

    def eval(self, expression):
        try:
            return self._inside.evaluate(f"async () => ({expression})")
        except Exception as e:
            raise Gone(str(e).splitlines()[0]) from None

    def click_at(self, x, y):
        box = self._inside.frame_element().bounding_box() if self.frame else dict(x=0, y=0)
        self.page.mouse.click(x + box["x"], y + box["y"])

    def press(self, key):
        self.page.keyboard.press(key)

    def type(self, text):
        self.page.keyboard.type(text)

    def screenshot(self, path):
        self.page.screenshot(path=path)

    def close(self):
        self.page.close()


class Chromium:
    name = "chromium"

    def __init__(self):
        try:
            from playwright.sync_api import sync_playwright
        except ImportError:
            raise Unavailable('no playwright: pip install "treekit-rag[browser]" (no browser is downloaded)') from None
        if not CHROMIUM:
            raise Unavailable("no Chromium here: apt-get install chromium")
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

    def page(self, width=1280, height=800, **given):
        return ChromiumPage(self.browser, width, height, **given)

    def close(self):
        self.browser.close()
        self.playwright.stop()


KEYS = dict(
    ArrowLeft="\ue012",
    ArrowUp="\ue013",
    ArrowRight="\ue014",
    ArrowDown="\ue015",
    Home="\ue011",
    End="\ue010",
    PageUp="\ue00e",
    PageDown="\ue00f",
    Enter="\ue007",
    Escape="\ue00c",
    Tab="\ue004",
    Space=" ",
    Backspace="\ue003",
    Delete="\ue017",
)


class FirefoxPage(Page):
    def __init__(self, browser, width, height):
        self.browser, self.trouble, self.asked = browser, [], []
        self.context = browser.ask("browsingContext.create", type="tab")["context"]
        browser.pages[self.context] = self
        browser.ask("browsingContext.setViewport", context=self.context, viewport=dict(width=width, height=height))

    def open(self, url):
        self.browser.ask("browsingContext.navigate", context=self.context, url=url, wait="complete")

    @property
    def _inside(self):
        if not self.frame:
            return self.context
        [top] = self.browser.ask("browsingContext.getTree", root=self.context)["contexts"]
        return top["children"][0]["context"] if top["children"] else self.context

    def eval(self, expression):
        code = f"(async () => JSON.stringify(await ({expression}) ?? null))()"
        found = self.browser.ask(
            "script.evaluate", expression=code, target=dict(context=self._inside), awaitPromise=True
        )
        if found["type"] != "success":
            raise Gone(found["exceptionDetails"]["text"])
        return json.loads(found["result"]["value"])

    def _act(self, **source):
        self.browser.ask("input.performActions", context=self._inside, actions=[source])

    def click_at(self, x, y):
        moves = [
            dict(type="pointerMove", x=round(x), y=round(y)),
            dict(type="pointerDown", button=0),
            dict(type="pointerUp", button=0),
        ]
        self._act(type="pointer", id="mouse", actions=moves)

    def press(self, key):
        value = KEYS.get(key, key)
        self._act(type="key", id="keys", actions=[dict(type="keyDown", value=value), dict(type="keyUp", value=value)])

    def type(self, text):
        for letter in text:
            self.press(letter)

    def screenshot(self, path):
        import base64

        data = self.browser.ask("browsingContext.captureScreenshot", context=self.context)["data"]
        path.write_bytes(base64.b64decode(data))

    def close(self):
        self.browser.ask("browsingContext.close", context=self.context)


class Firefox:
    name = "firefox"

    def __init__(self):
        try:
            from websocket import create_connection
        except ImportError:
            raise Unavailable('no websocket-client: pip install "treekit-rag[browser]"') from None
        if not FIREFOX:
            raise Unavailable("no Firefox here: apt-get install firefox-esr")
        import tempfile

        self.folder, self.pages, self.numbers = tempfile.TemporaryDirectory(), {}, itertools.count(1)
        words = [
            FIREFOX,
            "--headless",
            "--no-remote",
            "--profile",
            self.folder.name,
            "--remote-debugging-port",
            "0",
            "about:blank",
        ]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        address = next(
            (m[1] for line in self.process.stderr if (m := re.search(r"BiDi listening on (ws://\S+)", line))), None
        )
        if not address:
            raise Unavailable("this Firefox speaks no WebDriver BiDi")
        import threading

        threading.Thread(
            target=self.process.stderr.read, daemon=True
        ).start()  # what it says later must not fill the pipe
        self.socket = create_connection(f"{address}/session", timeout=120, suppress_origin=True)
        self.ask("session.new", capabilities={})
        self.ask("session.subscribe", events=["log.entryAdded", "network.beforeRequestSent"])

    def ask(self, method, **params):
        "One command; events that come meanwhile are noted."
        number = next(self.numbers)
        self.socket.send(json.dumps(dict(id=number, method=method, params=params)))
        while True:
            said = json.loads(self.socket.recv())
            if said.get("id") == number:
                if said["type"] == "error":
                    raise Gone(f"{method}: {said['error']}: {said['message']}")
                return said["result"]
            self._note(said)

    def _note(self, said):
        params = said.get("params", {})
        page = self.pages.get(params.get("context") or params.get("source", {}).get("context"))
        if page is None:
            return
        if said["method"] == "network.beforeRequestSent":
            page.asked.append(params["request"]["url"])
        elif params.get("level") == "error" and params.get("type") == "javascript":
            page.trouble.append(params["text"])

    def page(self, width=1280, height=800):
        return FirefoxPage(self, width, height)

    def close(self):
        self.process.terminate()
        self.process.wait(30)
        self.folder.cleanup()


BROWSERS = dict(chromium=Chromium, firefox=Firefox)
