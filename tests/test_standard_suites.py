"""LangChain's standard tests of tools, retrievers, embeddings and chat models."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain_tests", reason="needs LangChain's standard tests")

from langchain_tests.integration_tests import (
    ChatModelIntegrationTests,
    EmbeddingsIntegrationTests,
    RetrieversIntegrationTests,
    ToolsIntegrationTests,
)
from langchain_tests.unit_tests import ChatModelUnitTests, EmbeddingsUnitTests, ToolsUnitTests

from arag.models.embedders import Embedder
from arag.models.embeddings import EmbedderEmbeddings
from arag.models.extractive import ExtractiveModel
from arag.retrieval.tools.retriever import IndexRetriever
from arag.retrieval.tools.sets import make_tools
from fakes import HashEmbeddings

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.filterwarnings("ignore:The test .* is marked with '@pytest.mark.asyncio'"),
]

# --- tools ---

EXAMPLES = {
    "keyword_search": {"keywords": ["Boso"]},
    "semantic_search": {"queries": ["a daughter of Boso"]},
    "chunk_read": {"chunk_ids": ["boso:0"]},
    "grep": {"pattern": "Boso"},
    "list_documents": {},
    "query_tables": {},
    "shell": {"command": "rg Boso"},
}


@pytest.mark.parametrize("name", EXAMPLES)
class _OneOfTheTools:
    @pytest.fixture(autouse=True)
    def _make_tool(self, small_index, name):
        [self.made] = make_tools(small_index, names=[name])

    @property
    def tool_constructor(self):
        return self.made

    @property
    def tool_invoke_params_example(self):
        return EXAMPLES[self.made.name]


class TestToolsUnit(_OneOfTheTools, ToolsUnitTests):
    pass


class TestToolsIntegration(_OneOfTheTools, ToolsIntegrationTests):
    pass


# --- retrievers ---


@pytest.mark.parametrize("search", ["semantic", "keyword"])
class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _choose(self, small_index, search):
        self.params = {"index": small_index, "search": search}

    @property
    def retriever_constructor(self):
        return IndexRetriever

    @property
    def retriever_constructor_params(self):
        return self.params

    @property
    def retriever_query_example(self):
        return "Who was the father of Teutberga, and when did storms break bridges?"


# --- embeddings ---


class _OurEmbeddings:
    @property
    def embeddings_class(self):
        return EmbedderEmbeddings

    @property
    def embedding_model_params(self):
        return {"embedder": Embedder("hash", HashEmbeddings)}


class TestEmbeddingsUnit(_OurEmbeddings, EmbeddingsUnitTests):
    pass


class TestEmbeddingsIntegration(_OurEmbeddings, EmbeddingsIntegrationTests):
    pass


# --- the built-in model ---


class _BuiltIn:
    @property
    def chat_model_class(self):
        return ExtractiveModel

    @property
    def has_tool_choice(self):
        return False

    @property
    def has_structured_output(self):
        return False

    @property
    def returns_usage_metadata(self):
        return False

    @property
    def supports_model_override(self):
        return False


class TestBuiltInModelUnit(_BuiltIn, ChatModelUnitTests):
    pass


_calls_others = pytest.mark.xfail(strict=True, reason="by its rules, it calls the retrieval tools only")


class TestBuiltInModelIntegration(_BuiltIn, ChatModelIntegrationTests):
    @_calls_others
    def test_tool_calling(self, model):
        super().test_tool_calling(model)

    @_calls_others
    async def test_tool_calling_async(self, model):
        await super().test_tool_calling_async(model)

    @_calls_others
    def test_bind_runnables_as_tools(self, model):
        super().test_bind_runnables_as_tools(model)

    @_calls_others
    def test_tool_calling_with_no_arguments(self, model):
        super().test_tool_calling_with_no_arguments(model)

    @_calls_others
    def test_agent_loop(self, model):
        super().test_agent_loop(model)

    @_calls_others
    def test_unicode_tool_call_integration(self, model):
        super().test_unicode_tool_call_integration(model)
