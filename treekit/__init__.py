"""Reproduce, teach and take apart papers on tree-structured retrieval-augmented question answering"""

__version__ = "0.1.0"

_NAMES = {  # module -> names that `from treekit import …` knows; a module is loaded when one of its names is first used
    "api.loading": ("load", "load_corpus", "method", "model", "retriever"),
    "api.running": ("run", "ask", "explore", "Run"),
    "api.studies": ("ablate", "Study"),
    "api.tables": ("table",),
    "core.types": ("Question", "Passage"),
    "core.method": ("Intervention",),
    "papers.treerare.method": ("TreeRare",),
    "papers.toq.method": ("TreeOfQuestion",),
    "papers.arise.method": ("ARISE",),
    "papers.searchr.method": ("SearchR",),
    "papers.rdr2.method": ("RDR2",),
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names}
__all__ = list(_WHERE)


def __getattr__(name):
    if name not in _WHERE:
        raise AttributeError(f"module 'treekit' has no attribute {name!r}")
    from importlib import import_module

    globals()[name] = found = getattr(import_module(f"{__name__}.{_WHERE[name]}"), name)
    return found


def __dir__():
    return sorted({*globals(), *__all__})
