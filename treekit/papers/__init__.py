"Papers as plug-ins: the descriptor, and how installed papers are found."

from .plugin import Paper, discover, get_paper, papers, resolve  # noqa: F401
