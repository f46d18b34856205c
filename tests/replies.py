"Replies for the local server's `reply` setting that are as various as a model's: no two requests get the same, so no call answers for another."

import hashlib, re


def various(body):
    text = "\n".join(m["content"] for m in body["messages"])
    tag = "N" + hashlib.sha256(text.encode()).hexdigest()[:8]
    if re.search(r"response:", text, re.I):
        return f"response: Who is {tag} Vant?; Where is {tag} Essel?; When was {tag} Ltd founded?"
    if "FINAL" in text:
        return f"Explanation: the documents mention {tag}.\nFINAL: {tag}"
    return f"{tag} is mentioned in the documents, and was founded in 1901."


def reasoning(body):
    "ARISE's prompts: sub-questions that differ by sample and state, and a result for each."
    text = body["messages"][-1]["content"]
    tag = hashlib.sha256(text.encode()).hexdigest()
    if "Sub-question:" in text:
        return [
            f"Thought: one more.\nSub-question: Who is {tag[8 * i : 8 * i + 8]} Vant?"
            for i in range(body.get("n") or 1)
        ]
    if "Supporting facts" in text:
        return f"N{tag[:8]} Vant lives in E{tag[8:14]}."
    return f"N{tag[:8]}"


def routes(body):
    "RDR²'s prompts: the first visible paragraph answers, and every heading looks promising; a reader's text is any."
    text = body["messages"][-1]["content"]
    if "## Document" not in text:
        return various(body)
    tree = text.split("## Document")[1]
    found = re.findall(r"^\t*(\d+): (=*)", tree, re.M)
    return "\n".join(
        [*(f"[ANSWER] {i}" for i, mark in found[1:] if not mark)][:1]
        + [f"[EXPAND] {i}" for i, mark in found[1:] if mark]
    )
