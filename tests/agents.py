"Scripted agents for the local server's `reply` setting: each gets the request's JSON."

import re


def asked(body):
    return "\n".join(m["content"] for m in body["messages"])


def turn(body):
    "Which turn the prompt asks for; 0: it asks for something else."
    found = re.search(r"\nThought (\d+):\Z", asked(body))
    return int(found[1]) if found else 0


def answers(body):
    "What chains of thought, and the choice among them, reply."
    if "Choice:" in asked(body):
        return "Choice: 1"
    return [f"Explanation: path {i}.\nFINAL: {'Ribe' if i % 3 else 'Tarn'}" for i in range(body.get("n") or 1)]


def walks(body):
    "From the film to its director to her birthplace."
    return (
        [
            "I need the director.\nAction 1: Search[The Lamp]",
            "It doesn't say.\nAction 2: Lookup[directed]",
            "Thought 3: Mira Voss.\nAction 3: search[Mira Voss",
            "In Ribe.\nAction 4: Finish[Ribe]",
        ][turn(body) - 1]
        if turn(body)
        else answers(body)
    )


def lost(body):
    "Every kind of step that leads nowhere, and no end."
    steps = [
        "Action: Buy[bread]",
        "I don't know what to do.",
        "Action: Search[]",
        "Action: Lookup[mill]",
        "Action: Search[Nowhere]",
        "Action: Search[nowhere]",
        "Action: Finish[]",
        "Action: Search[Tarn",
    ]
    return steps[(turn(body) - 1) % 8] if turn(body) else answers(body)


WAYS = {
    "": ("Search[The Lamp]", "Search[Tarn]", "Search[the lamp]"),
    "Search[The Lamp]": ("Search[Mira Voss]", "Lookup[director]", "Finish[Tarn]"),
    "Search[Tarn]": ("Lookup[mill]", "Lookup[village]", "Search[Harbour]"),
    "Search[Mira Voss]": ("Finish[Ribe]", "Lookup[born]", "Search[Tarn]"),
    "Lookup[director]": ("Finish[Mira Voss]", "Lookup[plays]", "Search[Nobody]"),
}
WORTH = {
    "Search[The Lamp]": 7,
    "Search[Mira Voss]": 7,
    "Lookup[director]": 5,
    "Finish[Ribe]": 10,
    "Finish[Mira Voss]": 8,
}


def branches(body):
    "A tree: five turns for a state, three kinds of them (two at the root, where case doesn't matter), and a score for each."
    last = ([""] + re.findall(r"\nAction \d+: (.*)", asked(body).rpartition("\nQuestion: ")[2]))[-1]
    if "SCORE:" in asked(body):
        return f"So far.\nSCORE: {WORTH.get(last, 2)}"
    return (
        [f"Let me see.\nAction: {WAYS[last][i % 3]}" for i in range(body.get("n") or 1)]
        if turn(body)
        else answers(body)
    )


def endless(body):
    "A tree whose paths never finish."
    if "SCORE:" in asked(body):
        return "SCORE: 5"
    return (
        [f"On.\nAction: Lookup[{w}]" for w in ("mill", "quay", "mill", "mill", "quay")] if turn(body) else answers(body)
    )


def mistaken(body):
    "A path that finishes with a wrong answer, and with another one when it is told so."
    if not turn(body):
        return answers(body)
    said = "Finish[Ribe]" if "reward = 0" in asked(body).rpartition("\nQuestion: ")[2] else "Finish[Tarn]"
    return [f"So.\nAction: {said}"] * (body.get("n") or 1)
