"A parser from another folder."

import shutil
from dataclasses import replace

import pytest

from commands import ROOT
from treekit.config import UsageError, load_profile

pytest.importorskip("torch")


def test_a_parser_in_a_folder_reads_what_the_bundled_one_reads(tmp_path):
    from treekit.artefacts.environment_check import checks
    from treekit.syntax.entities import annotator_for
    from treekit.syntax.parser import parser_for

    shutil.copytree(ROOT / "data" / "parser", tmp_path / "mine")  # as the last cell of nbs/train/parser.ipynb makes it
    profile, text = load_profile("offline", parser=str(tmp_path / "mine")), "Who founded the town of Ada?"
    new, old = parser_for(profile), parser_for(load_profile("offline"))
    assert new.label == "Stanza models in 'mine'" and new.folder != old.folder and new.fingerprint == old.fingerprint
    assert new.parse([text]) == old.parse([text]) and annotator_for(profile.parser).parser.folder == new.folder
    assert {what: works for what, works, *_ in checks(profile)}["parser"] is True
    for name in ("bundeld", "combind"):
        with pytest.raises(UsageError, match="did you mean"):
            parser_for(replace(profile, parser=name))
