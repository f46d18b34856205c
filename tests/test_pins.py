"What SECURITY.md promises."

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def test_what_security_promises_is_so():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    code = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / "treekit").rglob("*.py"))
    assert "trust_remote_code=True" not in code and all(
        "weights_only=True" in line for line in code.splitlines() if "torch.load(" in line
    )
    assert "sbom" in (ROOT / "Makefile").read_text(encoding="utf-8") and "make sbom" in text
