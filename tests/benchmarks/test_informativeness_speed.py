"What quantitative retrieval costs: parses a second, once; seconds per index; milliseconds per query over 10,000 passages. Processor time, so that a busy machine says the same."

import time

from treekit.experiments.resources import load, load_corpus
from treekit.syntax.entities import Annotations, StanzaAnnotator, annotated_text
from treekit.retrieval.informativeness import Informativeness, Extensions


class Template(StanzaAnnotator):
    "Stanza for the first passages; the others get one of their trees, as far as it fits, since only the index's size matters."

    def __init__(self, n):
        super().__init__()
        self.left, self.known = n, []

    def __call__(self, texts):
        if self.left > 0:
            self.left -= len(texts)
            self.known += (made := super().__call__(texts))
            return made
        return [self.known[len(t) % len(self.known)] for t in texts]


def seconds(f):
    start = time.process_time()
    f()
    return time.process_time() - start


def test_ten_thousand_passages(tmp_path, monkeypatch):
    monkeypatch.setenv("TREEKIT_HOME", str(tmp_path))
    passages, questions = (
        load_corpus("musique", "synthetic:2600")[:10_000],
        [q.question for q in load("musique", "synthetic:2600", n=100)],
    )
    assert len(passages) == 10_000
    kept = Annotations(Template(256))
    kept([annotated_text(p) for p in passages[:128]])  # loads the models
    parsed = 128 / seconds(lambda: kept([annotated_text(p) for p in passages[128:256]]))
    kept([annotated_text(p) for p in passages])
    kept(questions)  # parsed before: what is timed is the scoring
    for name, steps in (("as in the paper", Extensions.paper()), ("all steps", Extensions())):
        r = Informativeness(passages, kept, steps)
        made = seconds(lambda: r._index)
        r.search(questions[:1])
        again = Informativeness(passages, kept, steps)
        read = seconds(lambda: again._index)
        each = [1000 * seconds(lambda: r.search([q], 15)) for q in questions]
        print(
            f"{len(passages):,} passages, {parsed:.0f} parsed a second; {name}: index {made:.1f} s, read again {read:.2f} s; query "
            f"{sum(each) / len(each):.1f} ms, the slowest {max(each):.1f} ms"
        )
        assert sum(each) / len(each) < 20
