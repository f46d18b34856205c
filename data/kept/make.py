"""Write anew what every first run would make: python data/kept/make.py [FOLDER], some two minutes.

Of the generated wiki's passages: their trees and entities, their vectors and their sentences' vectors. With the work folder (`.treekit`) of a
whole default run also the trees and entities of the questions that were searched with there. What lies here already is not read. Do this when
the wiki's texts, the parser, the embedding model or one of their versions changes; until it is done, a first run makes what is lacking.
"""
import sqlite3, sys
from pathlib import Path

from treekit.baselines.sentence_graph import sentences_of
from treekit.core.array_cache import write_arrays
from treekit.core.kept_database import pack_rows
from treekit.retrieval.dense import Embedder, _vector_rows
from treekit.syntax.entities import Annotations, StanzaAnnotator, annotated_text
from treekit.world.generate import World

HERE, LOT = Path(__file__).parent, 128


def annotated(texts):
    "Text -> its trees and entities, in lots as a run makes them."
    annotator = StanzaAnnotator()
    return {t: a for i in range(0, len(texts), LOT) for t, a in zip(texts[i:i + LOT], annotator(texts[i:i + LOT]))}


def of_run(folder):
    "The annotated texts that a run has kept."
    with sqlite3.connect(f"{(folder / 'entities' / 'entities.sqlite').resolve().as_uri()}?mode=ro", uri=True) as db:
        return db.execute("SELECT key, annotated FROM texts").fetchall()


def written(name, rows):
    "A file of rows, by key; of two with one key the first stays."
    rows = {key: value for key, value in reversed(rows)}
    write_arrays(HERE / f"{name}.npz", pack_rows(rows.items()))
    (HERE / f"{name}.npz").chmod(0o644)
    print(f"{name}.npz: {len(rows):,} rows, {(HERE / f'{name}.npz').stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    passages, embedder = list(World().passages()), Embedder()
    trees = annotated([annotated_text(p) for p in passages])
    written("entities", [*Annotations().rows(trees), *(row for folder in sys.argv[1:2] for row in of_run(Path(folder)))])
    sentences = [s.stated for p in passages for s, _ in sentences_of(p, trees[annotated_text(p)])]
    texts = list(dict.fromkeys([*(p.contents for p in passages), *sentences]))
    written("vectors", _vector_rows(embedder.identity, texts, embedder(texts)))
