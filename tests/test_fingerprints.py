"What makes a stored result stale: code that does something else, and nothing but that."

import pytest

from treekit.core import fingerprints
from treekit.core.fingerprints import code_fingerprint, method_fingerprint, modules_below
from treekit.papers.treerare.method import TreeRare

PHRASES = "treekit.papers.treerare.phrases"


@pytest.fixture
def changed(tmp_path, monkeypatch):
    "A function that puts other words into one of the kit's modules, for the fingerprints alone."
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path / "home"))
    original = fingerprints._file_of

    def change(module, edit):
        copy = tmp_path / f"{module}.py"
        with open(original(module), encoding="utf-8") as f:
            copy.write_text(edit(f.read()), encoding="utf-8")
        monkeypatch.setattr(
            fingerprints, "_file_of", lambda m, *packages: str(copy) if m == module else original(m, *packages)
        )
        code_fingerprint.cache_clear()

    yield change
    monkeypatch.undo()
    code_fingerprint.cache_clear()


def test_a_prediction_knows_the_module_of_its_phrases(changed):
    before = method_fingerprint(TreeRare())
    changed(PHRASES, lambda text: text + "\nANOTHER_RULE = 1\n")
    assert method_fingerprint(TreeRare()) != before


@pytest.mark.parametrize(
    "edit",
    [
        lambda text: text + "\n# a comment\n",
        lambda text: text.replace('"""', '"""Other words. ', 1),
        lambda text: "\n\n" + text,
    ],
    ids=["comment", "docstring", "blank lines"],
)
def test_words_about_code_change_nothing(changed, edit):
    before = method_fingerprint(TreeRare()), code_fingerprint("treekit.models.simulated.client")
    changed("treekit.core.prompts", edit)
    assert (method_fingerprint(TreeRare()), code_fingerprint("treekit.models.simulated.client")) == before


def test_imports_inside_functions_and_of_packages_are_followed():
    below = modules_below("treekit.papers.treerare.method")
    assert PHRASES in below and "treekit.core.prompts" in below
    assert not any(
        m.startswith(("treekit.models.simulated", "treekit.papers.toq", "treekit.papers.rdr2")) for m in below
    )


def test_a_method_on_a_real_model_does_not_depend_on_the_offline_one():
    for paper in ("treerare", "toq", "arise", "searchr", "rdr2"):
        below = modules_below(f"treekit.papers.{paper}.method")
        assert not [m for m in below if m.startswith("treekit.models.simulated")], paper
