"""A DSPy program beside the papers' methods. Its language model is the run's, behind a local address.

    pip install dspy
    run(["examples/pipelines/dspy_pipeline.py:answer", "treerare"], load("musique", n=20), model="openai")

DSPy reads its fields from the reply, which the simulated model doesn't write: take a real one. DSPy may hold libraries below the versions
of constraints.txt: a separate environment is best.
"""

import dspy

from treekit.adapters.proxy import model_server

program = dspy.ChainOfThought("context, question -> answer")


async def answer(question, context):
    passages = await context.retrieve(question, k=5)
    async with model_server(context) as server:
        lm = dspy.LM(f"openai/{server.model}", api_base=server.base_url, api_key=server.api_key, cache=False)
        with dspy.context(lm=lm):
            made = await program.acall(context=[p.stated for p in passages], question=question)
    return made.answer
