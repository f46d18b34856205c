"Replies for the local server: a model that knows one chain, author, birthplace, county, and goes along it in whatever form it is asked."

import re

CHAIN = [
    ("Who is the author of Grey Harbour?", "Grey Harbour is by Ida Roth."),
    ("What is the birthplace of Ida Roth?", "The birthplace of Ida Roth is Tarn."),
    ("In which county is Tarn?", "Tarn is in Voss County."),
]


def text(body):
    return "\n".join(m["content"] for m in body["messages"])


def last(said):
    return said.rsplit("Question: In which county is the birthplace", 1)[-1]  # what stands behind the question


def self_ask(body):
    said = text(body)
    if said.startswith("Answer the question with the help of the documents"):
        return next(a for q, a in CHAIN if f"Question: {q}" in said)
    if "Steps:\n" in said:
        return "Voss County"
    done = last(said).count("Follow up: ")
    return f"Follow up: {CHAIN[done][0]}" if done < 3 else "So the final answer is: Voss County"


def stubborn(body):
    "Asks the same follow-up for ever."
    return self_ask(body) if "Follow up" not in text(body) else f"Follow up: {CHAIN[0][0]}"


def endless(body):
    "Never comes to an answer by itself."
    said = text(body)
    if "own knowledge" in said:
        return "Tarn lies in Voss County, I believe."
    if "Refined query" in said:
        return f"Unclear.\nRefined query: query {said.count('query ')}"
    return "Explanation: as remembered.\nFINAL: Voss County"


def auto_rag(body):
    said = text(body)
    done = len(re.findall(r"^\[\d+\] ", said.split("Queries so far:")[1].split("Documents found:")[0], re.M))
    return f"{CHAIN[done - 1][1] if done else 'I know nothing yet.'}\n" + (
        f"Refined query: {CHAIN[done][0]}" if done < 3 else "Final answer: Voss County"
    )


def ircot(body):
    said = text(body)
    if "Thoughts so far:" not in said:
        return "Explanation: by the chain.\nFINAL: Voss County"
    done = len(re.findall(r"^\[\d+\] ", said.split("Thoughts so far:")[1], re.M))
    return f"{CHAIN[done][1]} And so on." if done < 2 else "So the answer is: Voss County."


def rambling(body):
    said = text(body)
    return (
        "Explanation: tired.\nFINAL: Tarn"
        if "Thoughts so far:" not in said
        else f"Thought {len(re.findall(r'Thought', said))} goes from Tarn to Orle and Ada."
    )


GUESSES = []


def retgen(body):
    "Another guess each time, on another page."
    GUESSES.append("Ada Lund Ada Lund actress|Orle Orle Lund town|Voss County".split("|")[len(GUESSES) % 3])
    return f"Explanation: It is {GUESSES[-1]}.\nFINAL: {GUESSES[-1]}"


def query2doc(body):
    return (
        "FINAL: Voss County"
        if "Documents" in text(body)
        else "Ida Roth, the author of Grey Harbour, has her birthplace in Tarn, Voss County."
    )


def disagreeing(body):
    said = text(body)
    if body.get("n"):
        return [
            f"Explanation: Grey Harbour is by Ida Roth. Her birthplace is {t}.\nFINAL: {a}"
            for t, a in (
                ("Orle", "Lund County"),
                ("Tarn", "Voss County"),
                ("Usk", "Usk"),
                ("Orle", "Lund county"),
                ("Bergen", ""),
            )
        ]
    if "checks whether" in said:
        return CHAIN["birthplace is" in said.split("Sentence:")[1]][0]
    if "verified thoughts" in said:
        return "Explanation: from the thoughts.\nFINAL: Voss County"
    return (
        "The documents don't say." if "author" in said.split("Question:")[1] else "The birthplace of Ida Roth is Tarn."
    )


def agreeing(body):
    return [
        f"Explanation: So it is.\nFINAL: {a}" for a in ("Voss County", "Tarn", "voss county", "Orle", "Voss County.")
    ]


def ratt(body):
    said = text(body)
    if "Several agents" in said:
        return "Merged " + "; ".join(re.findall(r"Draft \d", said)) + "."
    if "supplement to it" in said:
        return "United: " + said.split("Supplement: ")[1].splitlines()[0]
    if "search query" in said:
        return f"Tarn and Orle, of {said.split('Text: ')[1].splitlines()[0]}"
    if "bears on the query" in said:
        return f"What {said.split('Text: ')[1].split(':')[0]} says."
    if "Check the answer" in said:
        return said.split("Answer: ")[1].split("\nRevised")[0] + " Checked."
    if body.get("n"):
        return [f"Draft {i}.\n\nIt ends." if "Earlier" not in said else f"Draft {i} longer." for i in range(body["n"])]
    return "FINAL: Voss County"


def chains(body):
    return [
        f"Explanation: Reason {i} about Tarn.\nFINAL: {a}"
        for i, a in enumerate(
            ["Tarn", "Voss County", "voss county", "Orle", "", "Voss County", "Orle", "Tarn", "Voss County!", "Usk"]
        )
    ]
