"The papers' text by section, where the papers lie beside the clone."

import re
import unicodedata

# paper -> (section, how its heading's line begins), in the order of the text
HEADINGS = {
    "treerare": [
        ("Abstract", "Abstract"),
        ("Sec. 1", "1 Introduction"),
        ("Sec. 2", "2 Related"),
        ("Sec. 4", "4 Experiments"),
        ("Sec. 4.2", "4.2 Results"),
        ("Sec. 5", "5 Analysis"),
        ("Sec. 5.1", "5.1 "),
        ("Sec. 5.2", "5.2 "),
        ("Sec. 5.3", "5.3 "),
        ("Sec. 5.4", "5.4 "),
        ("Sec. 6", "6 Conclusion"),
        ("Limitations", "Limitation"),
        ("References", "References"),
        ("App. A", "A "),
        ("App. B", "B Baseline"),
    ],
    "toq": [
        ("Abstract", "## Abstract"),
        ("Sec. 1", "## 1 "),
        ("Sec. 4.4", "#### 4.4"),
        ("Sec. 5", "## 5 "),
        ("Sec. 5.2", "## 5.2"),
        ("Sec. 5.3", "## 5.3"),
        ("Sec. 5.4", "## 5.4"),
        ("Sec. 6", "## 6 "),
        ("App. C", "## C "),
        ("App. D", "## D "),
        ("App. E", "## E "),
    ],
    "arise": [
        ("Abstract", "Abstract"),
        ("Sec. 1", "1 Introduction"),
        ("Sec. 2", "2 The ARISE"),
        ("Sec. 3.2", "3.2 "),
        ("Sec. 3.3", "3.3 "),
        ("Sec. 3.4", "3.4 "),
        ("Sec. 3.5", "3.5 "),
        ("Sec. 3.5.1", "3.5.1"),
        ("Sec. 3.5.2", "3.5.2"),
        ("Sec. 3.6.1", "3.6.1"),
        ("Sec. 3.6.2", "3.6.2"),
        ("Sec. 4", "4 Related"),
        ("App. A", "A Impact"),
        ("App. B", "B Further"),
    ],
    "searchr": [
        ("Abstract", "Abstract"),
        ("Sec. 1", "1 Introduction"),
        ("Sec. 2", "2 Method"),
        ("Sec. 2.4", "2.4 "),
        ("Sec. 2.5", "2.5 "),
        ("Sec. 3.2", "3.2 "),
        ("Sec. 3.3", "3.3 "),
        ("Sec. 3.4", "3.4 "),
        ("Sec. 4", "4 Related"),
        ("App. A.2", "A.2 "),
        ("App. A.3", "A.3 "),
        ("App. A.4", "A.4 "),
        ("Prompts", "You are a question-decomposition"),
    ],
    "rdr2": [
        ("Abstract", "### Abstract"),
        ("Sec. 1", "### 1 "),
        ("Sec. 2", "## 2 "),
        ("Sec. 5.1", "### 5.1"),
        ("Sec. 5.2", "### 5.2 "),
        ("Sec. 5.2.1", "### 5.2.1"),
        ("Sec. 5.2.2", "### 5.2.2"),
        ("Sec. 5.2.3", "### 5.2.3"),
        ("Sec. 5.3", "### 5.3"),
        ("Sec. 5.4", "### 5.4"),
        ("Sec. 6", "### 6 "),
        ("App. A.1", "### A.1"),
        ("App. A.2", "# A.2"),
        ("App. B", "### B "),
        ("App. B.1", "### Main results"),
        ("App. B.2", "### **B.2**"),
    ],
}


def plain(text):
    "A text without markup, hyphens and the kind of its blanks, which the conversions have in different places."
    text = re.sub(r"<[^<>\n]{1,9}>", "", unicodedata.normalize("NFKC", text))
    text = re.sub(r"[*_$\\‘’'“”\"|]", " ", text)
    text = re.sub(r"-\s*", "", text)
    return re.sub(r"\s+", " ", text).lower().strip()


def sections(paper, text):
    "section -> its text, without markup; a table's is what lies around its caption."
    lines, at, found = text.splitlines(), -1, {}
    starts = []
    for name, head in HEADINGS[paper]:
        at = next(i for i, line in enumerate(lines) if i > at and line.startswith(head))
        starts.append((name, at))
    for (name, start), end in zip(starts, [*(s for _, s in starts[1:]), len(lines)]):
        found[name] = plain("\n".join(lines[start:end]))
    for i, line in enumerate(lines):
        if number := re.match(r"\W*Table (\d+):", line):
            found[f"Tab. {number[1]}"] = plain("\n".join(lines[max(0, i - 14) : i + 8]))
    return found
