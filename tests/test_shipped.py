"The weights that come with the kit: all there, unchanged, small enough, and made by today's recipes."

import hashlib

import pytest

from treekit.papers.searchr import training as navigator
from treekit.papers.rdr2 import training as router
from treekit.training import pretrained


def test_every_file_is_what_the_manifest_says():
    models, folder = pretrained.manifest()["models"], pretrained.models_folder()
    assert models and {m["file"] for m in models.values()} == {p.name for p in folder.glob("*.xz")}
    for entry in models.values():
        data = (folder / entry["file"]).read_bytes()
        assert (hashlib.sha256(data).hexdigest(), len(data)) == (entry["sha256"], entry["bytes"]), entry["file"]
        assert not entry["against"] or entry["against"] in models
    assert sum(p.stat().st_size for p in folder.iterdir()) <= pretrained.LIMIT


def test_the_recipes_are_todays(monkeypatch, tmp_path):
    "If this fails, a setting or the data has changed since the weights were trained: they are not used, and nbs/train/models.ipynb makes them anew."
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    for cached in (router.tiny_samples, navigator.tiny_pairs):
        cached.cache_clear()
    models = pretrained.manifest()["models"]
    assert (
        models["router/samples"]["recipe"] == router.samples_recipe()
        and models["navigator/pairs"]["recipe"] == navigator.pairs_recipe()
    )
    for name, entry in models.items():
        kind, what, *seed = name.split("/")
        if seed:
            assert entry["recipe"] == dict(router=router, navigator=navigator)[kind].recipe(what, int(seed[0])), name
    for cached in (router.tiny_samples, navigator.tiny_pairs):
        cached.cache_clear()


def test_no_table_trains():
    "All that RDR²'s Table 4 and SEARCH-R's tables want comes along, in the room that there is."
    wanted = {f"router/{name}/0" for name in router.SETTINGS}
    wanted |= {"router/inst/0"} | {f"navigator/{stage}/0" for stage in {*navigator._FOLDERS} - {"before SFT"}}
    assert wanted <= pretrained.manifest()["models"].keys()


def test_a_changed_file_is_an_error_that_says_what_to_do(monkeypatch, tmp_path):
    first = {"model/a.json": b"{}", "log.json": b"[]"}
    monkeypatch.setattr(pretrained, "models_folder", lambda: tmp_path)
    pretrained.ship("toy/one/0", "r", first)
    assert pretrained.shipped("toy/one/0", "r") == first
    next(tmp_path.glob("*.xz")).write_bytes(b"cut off")
    with pytest.raises(pretrained.UsageError, match="git checkout data/models"):
        pretrained.shipped("toy/one/0", "r")
