"The method of My Paper: search, search once more with what was found, answer."

from dataclasses import dataclass

from treekit.core.method import Context, Prediction, check_fields, hit_records
from treekit.core.types import Question

from .prompts import ANSWER


@dataclass(frozen=True)
class TwoSearches:
    "Retrieve with the question, retrieve once more with the first passage, then answer."

    top_k: int = 2  # passages of the first search
    second: bool = True  # False: the ablation without the second search

    def __post_init__(self):
        check_fields(self)

    async def __call__(self, question: Question, context: Context) -> Prediction:
        root = context.trace.add("question", question.question)
        query, found = question.question, []
        for step in range(1 + self.second):
            [hits] = await context.retrieve(
                [query], self.top_k + step
            )  # the second search finds the first passage again
            context.trace.add("search", query, root, hits=hit_records(hits))
            found += [hit.passage for hit in hits if hit.passage not in found]
            query = found[0].text
        node = context.trace.add("answer", "", root)
        reply = await context.ask(ANSWER, node=node, question=question.question, documents=found)
        node.text = reply["answer"]
        return Prediction(node.text, context.trace, context.usage)


METHODS = {"My Paper": TwoSearches(), "My Paper w/o second search": TwoSearches(second=False)}
