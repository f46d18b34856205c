"Prompts of My Paper."

from treekit.core.output_parsers import FINAL
from treekit.core.prompts import Prompt

# the second word is the task: what the embedded model does when it is asked this
ANSWER = Prompt(
    "mypaper.answer",
    "answer",
    """\
Answer the question from the documents. Explain in one sentence, then write the answer.

Documents:
$documents

Question: $question

Explanation: …
FINAL: …""",
    FINAL,
)

PROMPTS = (ANSWER,)
