"""Record `explorer.gif` and `explorer.png`: python figures/readme/record.py. Needs Chromium and the package playwright."""
import io, os, sys, tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["TREEKIT_HOME"] = tempfile.mkdtemp()

from PIL import Image

from browsers import Chromium
from treekit.config import load_profile
from treekit.experiments.resources import load
from treekit.experiments.run import run
from treekit.explorer.api import ExplorerAPI
from treekit.explorer.runs import open_store
from treekit.explorer.server import ServedExplorer
from treekit.papers.registry import method

SIZE = 1280, 720
WIDTH = 960  # of the committed pictures, pixels


def saved_run():
    "Saved run of two methods on twelve questions."
    methods = {"ARISE": method("arise"), "TreeRare": method("treerare")}
    run(methods, {d: load(d, n=6) for d in ("hotpotqa", "musique")}, load_profile("offline"), progress=False)


def record():
    "Frames of a walk: (PNG, milliseconds)."
    frames = []
    with ServedExplorer(ExplorerAPI(open_store(), forks=True)) as served:
        browser = Chromium()
        page = browser.page(*SIZE)
        page.open(served.address)
        assert page.until("window.explorer && explorer.tree.n && document.querySelector('.tkx-right h2')"), page.trouble

        def shot(milliseconds):
            page.page.wait_for_timeout(400)
            frames.append((page.page.screenshot(), milliseconds))

        shot(2000)
        items = int(page.eval("document.querySelectorAll('.tkx-one [role=treeitem]').length"))
        for at in range(1, min(items, 5)):
            page.click(".tkx-one [role=treeitem]", at)
            shot(1100)
        with_call = "[...document.querySelectorAll('.tkx-one [role=treeitem]')].findIndex(e => e.innerText.includes('call'))"
        page.click(".tkx-one [role=treeitem]", int(page.eval(with_call)))
        shot(900)
        page.eval("(document.querySelector('.tkx-call details summary').click(), 1)")
        shot(2500)
        for row in (3, 7):
            page.eval(f"explorer.openRow({row}).then(() => 1)")
            shot(1600)
        page.eval("([...document.querySelectorAll('button')].find(b => b.innerText.startsWith('Switches')).click(), 1)")
        shot(2500)
        browser.close()
    return frames


def save(frames):
    "Write the animated GIF, and the first frame as PNG."
    pictures = [Image.open(io.BytesIO(png)).convert("RGB") for png, _ in frames]
    pictures = [p.resize((WIDTH, round(WIDTH * p.height / p.width)), Image.LANCZOS) for p in pictures]
    pictures[0].quantize(128).save(HERE / "explorer.png", optimize=True)
    few = [p.quantize(64, dither=Image.Dither.NONE) for p in pictures]
    few[0].save(HERE / "explorer.gif", save_all=True, append_images=few[1:], duration=[t for _, t in frames], loop=0, optimize=True)


if __name__ == "__main__":
    saved_run()
    save(record())
