"JupyterLab on this machine, for tests that drive it in a browser."

import os, re, secrets, subprocess, sys, time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen


@contextmanager
def lab(folder, **env):
    "A running server with this folder as its top; yields a function that gives a notebook's address."
    folder, token = Path(folder), secrets.token_hex(16)
    words = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ip=127.0.0.1",
        "--port=0",
        f"--IdentityProvider.token={token}",
        f"--ServerApp.root_dir={folder}",
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly",
        "--LabApp.news_url=None",
    ]
    own = {f"JUPYTER_{what}_DIR": str(folder / f".{what.lower()}") for what in ("CONFIG", "DATA", "RUNTIME")}
    said = folder / ".lab.log"
    with open(said, "w") as log:
        server = subprocess.Popen(words, env=os.environ | own | env, stdout=log, stderr=log)
    try:
        end, base = time.monotonic() + 120, ""
        while not base:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)/lab", said.read_text()):
                base = f"http://127.0.0.1:{found[1]}"
            assert server.poll() is None and time.monotonic() < end, said.read_text()[-2000:]
            time.sleep(0.1)
        urlopen(f"{base}/api/status?token={token}", timeout=60).read()
        yield lambda notebook: f"{base}/lab/tree/{notebook}?reset&token={token}"
    finally:
        server.terminate()
        server.wait(30)


def opened(page, url):
    "A notebook, open in Lab with its kernel at work."
    page.open(url)
    assert page.until("window.jupyterapp && document.querySelector('.jp-Notebook .jp-Cell')", 180), (
        "JupyterLab didn't open the notebook"
    )
    session = "jupyterapp.shell.currentWidget.sessionContext.session"
    assert page.until(f"{session} && {session}.kernel", 120)
    page.eval("jupyterapp.commands.execute('application:toggle-left-area').then(() => 1, () => 1)")
