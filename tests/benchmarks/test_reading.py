"Seconds to read a .json file of questions in HotpotQA's shape, at the sizes of its dev and train files."

import json, time

import pytest

from treekit.corpora.load import Files

SENTENCE = "Sentence {} of page {} about something that takes about a hundred and forty characters, as one in HotpotQA does, or so."
SIZES = (1000, 7405, 90_447)


def record(i):
    titles = [f"Film {i}", *(f"Page {i} {k}" for k in range(1, 10))]
    return dict(
        _id=f"q{i:06d}",
        question=f"Who directed film number {i}?",
        answer=f"Person {i}",
        type="bridge",
        level="hard",
        supporting_facts=[[titles[0], 0]],
        context=[[t, [SENTENCE.format(s, t) for s in range(4)]] for t in titles],
    )


@pytest.mark.slow
def test_reading_is_linear(tmp_path):
    rates = []
    for n in SIZES:
        path = tmp_path / "hotpot_dev_distractor_v1.json"
        with open(path, "w") as f:
            for i in range(n):
                f.write(("[" if not i else ", ") + json.dumps(record(i)))
            f.write("]")
        began = time.process_time()
        assert len(Files(path).questions("hotpotqa")) == n
        rates.append((time.process_time() - began) / n)
        print(
            f"{n:>7,} records, {path.stat().st_size / 1e6:5.0f} MB: {n * rates[-1]:6.1f} s; {rates[-1] * 1000:.2f} ms a record, "
            f"{rates[-1] / rates[0]:.2f} of the first"
        )
