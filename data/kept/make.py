"""Write anew what every first run would make: python data/kept/make.py [DIR], some three minutes.

Run it with ATEN_CPU_CAPABILITY=avx2 MKL_CBWR=AVX2,STRICT DNNL_MAX_CPU_ISA=AVX2 in the environment, on a processor with AVX2: the keys of
the vectors name that instruction set (`treekit.utils.instruction_set`). The run in DIR has it, too: offline
`treekit reproduce` sets it.

Of the synthetic wiki's passages: their trees and entities, their vectors and their sentences' vectors. Of the assignments' practice
corpora, and of the documentation's questions: the trees, which the small install can't make. With the work folder (`.treekit`)
of `treekit reproduce treerare arise toq searchr rdr2 across` also the trees and entities of the questions that were searched with there,
and the parses: of all that its traces say, what is among the folder's annotated and parsed texts. And all vectors that the run has made,
in files of their own; so move `vectors_*.npz` away before it, or those that nobody needs any more come along. Do this when the wiki's
texts, the simulated model's words, the parser, the embedding model or one of their versions changes; until it is done, a first run makes
what is lacking.
"""

import json, re, sqlite3, sys, zlib
from pathlib import Path

import numpy as np

from treekit.baselines.sentence_graph import sentences_of
from treekit.classroom.course import course_settings
from treekit.classroom.practice import practice_model
from treekit.classroom.student_corpora import generate_corpus
from treekit.config import kit_path
from treekit.utils.array_cache import write_arrays
from treekit.utils.instruction_set import REFERENCE, instruction_set
from treekit.corpora.bundled_questions import REAL, BundledQuestions
from treekit.retrieval.dense import Embedder
from treekit.retrieval.vector_cache import VECTOR_FILE, vector_key, vector_rows
from treekit.syntax.entities import Annotations, StanzaAnnotator, annotated_text
from treekit.syntax.parser import ParseCache, StanzaParser, to_json
from treekit.synthetic.generate import SyntheticWiki

HERE, LOT, FILE = Path(__file__).parent, 128, 8000  # FILE: vectors, some six megabytes


def annotated(texts):
    "Text -> its trees and entities, in lots as a run makes them."
    annotator = StanzaAnnotator()
    return {t: a for i in range(0, len(texts), LOT) for t, a in zip(texts[i : i + LOT], annotator(texts[i : i + LOT]))}


def said(value):
    "All texts in a trace."
    if isinstance(value, str):
        yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from said(below)


def opened(file):
    if not file.exists():
        sys.exit(f"no file {file}: give the work folder (.treekit) of a whole default run")
    return sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)


def of_run(folder):
    "The annotated texts of a run that its traces have, its parses and its vectors: of each the rows."
    annotations = Annotations()
    with opened(folder / "store" / "offline.sqlite") as db:
        traces = db.execute("SELECT trace FROM predictions WHERE trace NOT NULL")
        texts = {t for (trace,) in traces for t in said(json.loads(zlib.decompress(trace)))}
    texts |= {q.question for name in ("musique", "hotpotqa", "2wiki") for q in SyntheticWiki().dataset(name, 200)}
    real = {q.question for name in REAL for q in BundledQuestions().questions(name)}
    texts -= real
    wanted = {annotations._key(t) for t in texts}
    with opened(folder / "entities" / "entities.sqlite") as db:
        entities = [row for row in db.execute("SELECT key, annotated FROM texts") if row[0] in wanted]
    with opened(folder / "parses" / "parses.sqlite") as db:
        parses = [
            (bytes.fromhex(key), zlib.compress(parse.encode(), 9))
            for key, parse in db.execute("SELECT key, parse FROM parses")
            if json.loads(parse)[0] in texts
        ]
    real |= {p.contents for name in REAL for p in BundledQuestions().passages(name)}
    left_out = {vector_key(Embedder().identity, t) for t in real}
    with opened(folder / "embeddings" / VECTOR_FILE) as db:
        vectors = [row for row in db.execute("SELECT key, vector FROM vectors") if row[0] not in left_out]
    return entities, parses, vectors


def of_small_install():
    "Rows of what a student without a parser reads: passages and questions of the practice corpora, questions of the documentation."
    passages, world = {}, practice_model().corpus
    questions = {q.question: 0 for kind in ("bridge", "compositional") for q in world.questions(kind, 10)}
    for page in [kit_path("nbs", "index.ipynb"), *sorted(kit_path("nbs", "docs").rglob("*.md"))]:
        questions |= dict.fromkeys(re.findall(r'\bask(?: |\()\\?"([^"\\]+\?)', page.read_text(encoding="utf-8")), 0)
    for path in sorted(kit_path("nbs", "assignments").glob("[0-9]*.ipynb")):
        settings = course_settings(path.stem).world
        world, held_out = generate_corpus(0, path.stem, settings)
        for q in [*world["questions"], *held_out]:
            questions |= {q["question"]: 0} if settings.get("parses") else {}
            passages |= {p["text"]: 0 for p in q.get("pool", ())}
    parser = StanzaParser()
    parsed = parser.parse_uncached(list(questions))
    keys = (bytes.fromhex(ParseCache.key(parser.fingerprint, p.text)) for p in parsed)
    parses = [(key, zlib.compress(to_json(p).encode(), 9)) for key, p in zip(keys, parsed)]
    return Annotations().rows(annotated(list(passages))), parses


def written(name, rows):
    "A file of rows, by key; of two with one key the first stays."
    rows = {key: value for key, value in reversed(rows)}
    keys, values = zip(*sorted(rows.items()))
    joined = {part: np.frombuffer(b"".join(some), np.uint8) for part, some in (("keys", keys), ("values", values))}
    write_arrays(HERE / f"{name}.npz", joined | dict(ends=np.cumsum([len(v) for v in values], dtype=np.int64)))
    (HERE / f"{name}.npz").chmod(0o644)
    print(f"{name}.npz: {len(rows):,} rows, {(HERE / f'{name}.npz').stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    if instruction_set() != REFERENCE:
        sys.exit(f"the instruction set is {instruction_set()!r}, and must be {REFERENCE!r}: see above")
    of_questions, parses, vectors = (
        of_run(Path(sys.argv[1])) if sys.argv[1:] else ([], [], [])
    )  # first: a wrong folder is known at once
    passages, embedder = list(SyntheticWiki().passages()), Embedder()
    trees = annotated([annotated_text(p) for p in passages])
    candidates, asked = of_small_install()
    written("entities", [*Annotations().rows(trees), *of_questions, *candidates])
    sentences = [s.stated for p in passages for s, _ in sentences_of(p, trees[annotated_text(p)])]
    texts = list(dict.fromkeys([*(p.contents for p in passages), *sentences]))
    made = dict(vector_rows(embedder.identity, texts, embedder.compute(texts)))
    written("vectors", made.items())
    more = sorted((key, vector) for key, vector in vectors if key not in made)
    for i in range(0, len(more), FILE):
        written(f"vectors_{i // FILE + 1}", more[i : i + FILE])
    if parses:
        written("parses", [*parses, *asked])
