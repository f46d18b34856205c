"""A LlamaIndex query engine beside the papers' methods. Its LLM is the run's, behind a local address; its retriever asks the run's.

pip install llama-index-core llama-index-llms-openai-like
run(["examples/pipelines/llama_index_pipeline.py:answer", "treerare"], load("musique", n=20))
"""

from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.llms.openai_like import OpenAILike

from treekit.adapters.proxy import model_server


class RunRetriever(BaseRetriever):
    def __init__(self, context):
        super().__init__()
        self.context = context

    def _retrieve(self, query_bundle):
        raise NotImplementedError("use aquery")

    async def _aretrieve(self, query_bundle):
        passages = await self.context.retrieve(query_bundle.query_str, k=5)
        return [
            NodeWithScore(node=TextNode(text=p.stated, id_=p.id), score=1 / rank) for rank, p in enumerate(passages, 1)
        ]


async def answer(question, context):
    async with model_server(context) as server:
        llm = OpenAILike(model=server.model, api_base=server.base_url, api_key=server.api_key, is_chat_model=True)
        engine = RetrieverQueryEngine.from_args(RunRetriever(context), llm=llm)
        return str(await engine.aquery(question))
