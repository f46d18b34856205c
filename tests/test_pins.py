"Pinned versions and the hashes of their files."

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_every_pin_has_hashes_and_no_other_version():
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "constraints.txt").read_text(encoding="utf-8"), re.M))
    blocks = re.split(r"^(?=[\w.-]+==)", (ROOT / "constraints-hashed.txt").read_text(encoding="utf-8"), flags=re.M)[1:]
    hashed = {
        m[1]: m[2]
        for b in blocks
        if (m := re.match(r"([\w.-]+)==(\S+)", b)) and re.search(r"--hash=sha256:[0-9a-f]{64}", b)
    }

    def plain(names):
        return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in names.items()}

    assert plain(pins) == plain(hashed) and len(pins) > 200


def test_what_security_promises_is_so():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    code = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "treekit").rglob("*.py"))
    assert "trust_remote_code=True" not in code and all(
        "weights_only=True" in line for line in code.splitlines() if "torch.load(" in line
    )
    assert "sbom" in (ROOT / "Makefile").read_text(encoding="utf-8") and "make sbom" in text
