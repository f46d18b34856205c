"""A LangGraph graph beside the papers' methods. Its chat model is the run's, behind a local address.

pip install langgraph langchain-openai
run(["examples/pipelines/langgraph_pipeline.py:answer", "treerare"], load("musique", n=20))
"""

from typing import TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph

from treekit.adapters.proxy import model_server


class State(TypedDict):
    question: str
    passages: str
    draft: str
    answer: str


def build(model, context):
    async def search(state):
        return {"passages": "\n".join(p.stated for p in await context.retrieve(state["question"], k=5))}

    async def read(state):
        reply = await model.ainvoke(f"{state['passages']}\n\nAnswer in a few words.\nQuestion: {state['question']}")
        return {"draft": reply.content}

    async def check(state):
        reply = await model.ainvoke(
            f"{state['passages']}\n\nSomebody said {state['draft']}.\nQuestion: {state['question']}"
        )
        return {"answer": reply.content}

    graph = StateGraph(State)
    for node in (search, read, check):
        graph.add_node(node.__name__, node)
    for edge in ((START, "search"), ("search", "read"), ("read", "check"), ("check", END)):
        graph.add_edge(*edge)
    return graph.compile()


async def answer(question, context):
    async with model_server(context) as server:
        model = ChatOpenAI(model=server.model, base_url=server.base_url, api_key=server.api_key)
        return (await build(model, context).ainvoke({"question": question}))["answer"]
