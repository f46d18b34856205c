"""What stands in for weights, indexes and the real Wikipedia in a lab's notebooks (`paper_lab`), each under the name of the real one. The
first cell of a notebook installs it in its kernel."""

from pathlib import Path

from treekit.artefacts.mocks import RequestLog, mock_resources
from treekit.config import kit_path
from treekit.corpora.lookup import Documents
from treekit.experiments.resources import Resources
from treekit.scoring import judges
from treekit.utils import model_files

PASSAGES, PAGES = 21_015_324, 5_820_123  # as the stores of the real Wikipedia count
BGE = "BAAI/bge-base-en-v1.5"


class _Named:
    "A substitute under the name of the judge whose place it takes."

    def __init__(self, name, judge):
        self.name, self.judge = name, judge

    def __call__(self, *args):
        return self.judge(*args)


def install():
    "Mocks of what no machine of a test has; each under the name of the real one."
    mock_resources(RequestLog(Path("requests.jsonl")), kit_path("data", "fixtures"), Path("wiki.trees"))
    judges.make_judge = lambda name, model, stand_in, metric: (
        stand_in() if name == "offline" else _Named(name, stand_in())
    )
    Documents.__len__ = lambda self: PAGES
    real = Resources._corpus

    def corpus(self, dataset):
        found = real(self, dataset)
        if self.profile.corpus:
            found.label = f"{PASSAGES:,} passages"
        return found

    Resources._corpus = corpus
    folder_of = model_files.model_folder
    model_files.model_folder = lambda model: (
        Path(model) if model == BGE else folder_of(model)
    )  # Table 4 of ARISE looks whether it is there
    _plain_figures()


def _plain_figures():
    from matplotlib.figure import Figure
    from matplotlib_inline.backend_inline import set_matplotlib_formats
    from treekit.figures import plots

    plots.COLUMN, plots.text_faults = plots.PAGE, lambda *args: []
    Figure.savefig = lambda self, *args, **kwargs: None
    Figure.draw_without_rendering = lambda self: None
    set_matplotlib_formats()
