"""Token counts: exact with tiktoken's o200k_base, or a documented estimate if its vocabulary is not available."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from functools import cache, lru_cache

import tiktoken

from arag.text.scripts import FIRST_EAST_ASIAN

ENCODING = "o200k_base"
ESTIMATE = "estimate"

_LOAD_SECONDS = 15.0  # tiktoken downloads its vocabulary without a timeout
_CACHED_TEXTS = 16_384  # texts of messages and results; more cost memory
_MAX_CHARACTERS = 100_000  # given to tiktoken at once: it panics at a million spaces

# With these, estimates are within a tenth of o200k_base on English and Chinese prose.
_ASCII_CHARACTERS_PER_TOKEN = 4.2
_TOKENS_PER_EAST_ASIAN_CHARACTER = 0.65
_TOKENS_PER_OTHER_CHARACTER = 0.35


def name_tokenizer() -> str:
    """Return how this process counts tokens: `o200k_base`, or `estimate`."""
    if isinstance(load_encoding(), str):
        return ESTIMATE
    return ENCODING


def count_tokens(text: str) -> int:
    """Count the tokens of a text; a conversation's messages are counted again at every step, so counts are cached."""
    # Texts of LangChain's messages are of a subclass of str, which the cache would not match.
    return _count_cached(str(text))


@lru_cache(_CACHED_TEXTS)
def _count_cached(text: str) -> int:
    return count_batch([text])[0]


def count_batch(texts: Sequence[str]) -> list[int]:
    """Count the tokens of each text, without a cache."""
    encoding = load_encoding()
    if isinstance(encoding, str):
        return [estimate_tokens(text) for text in texts]
    # encode_ordinary_batch starts threads at every call, which costs more than the texts do.
    return [_count_exactly(text, encoding) for text in texts]


def _count_exactly(text: str, encoding: tiktoken.Encoding) -> int:
    tokens = 0
    for start in range(0, len(text), _MAX_CHARACTERS):
        piece = text[start : start + _MAX_CHARACTERS]
        tokens += len(encoding.encode_ordinary(piece))
    return tokens


@cache
def warn_of_estimates() -> None:
    """Warn, once in a process, if token counts that are stored or compared are estimates."""
    fault = load_encoding()
    if isinstance(fault, str):
        warnings.warn(
            f"the vocabulary of {ENCODING} could not be loaded ({fault}); token counts are estimates. "
            "Set TIKTOKEN_CACHE_DIR to a folder that holds it for exact counts.",
            stacklevel=2,
        )


def estimate_tokens(text: str) -> int:
    """Estimate the o200k_base tokens of a text from its characters."""
    if not text:
        return 0
    # Most texts are ASCII, which is known without a look at each character.
    ascii_characters = len(text)
    east_asian = 0
    if not text.isascii():
        ascii_characters = sum(map(str.isascii, text))
        east_asian = sum(character >= FIRST_EAST_ASIAN for character in text)
    other = len(text) - ascii_characters - east_asian
    tokens = (
        ascii_characters / _ASCII_CHARACTERS_PER_TOKEN
        + east_asian * _TOKENS_PER_EAST_ASIAN_CHARACTER
        + other * _TOKENS_PER_OTHER_CHARACTER
    )
    return max(1, round(tokens))


@cache
def load_encoding() -> tiktoken.Encoding | str:
    """Load the vocabulary at the first call, or return why it cannot be loaded; tokens are then estimated.

    tiktoken takes it from `TIKTOKEN_CACHE_DIR`, or downloads it, for which it gets 15 seconds.
    """
    result: tiktoken.Encoding | str = f"no answer within {_LOAD_SECONDS:.0f} s"

    def load() -> None:
        nonlocal result
        try:
            result = tiktoken.get_encoding(ENCODING)
        except (OSError, ValueError) as error:  # requests' errors are OSErrors; a bad download a ValueError
            result = type(error).__name__

    thread = threading.Thread(target=load, daemon=True, name="load-tokenizer")
    thread.start()
    thread.join(_LOAD_SECONDS)
    return result
