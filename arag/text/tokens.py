"""Token counts: exact with tiktoken's o200k_base, or a documented estimate if its vocabulary is not available."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from functools import cache, lru_cache

import tiktoken

ENCODING = "o200k_base"
ESTIMATE = "estimate"

_LOAD_SECONDS = 15.0  # tiktoken downloads its vocabulary without a time-out
_CACHED_TEXTS = 16_384
_MAX_CHARACTERS = 100_000  # of a text that tiktoken gets at once: it panics at a million spaces


def name_tokenizer() -> str:
    """Return what counts tokens in this process: `o200k_base`, or `estimate`."""
    return ESTIMATE if isinstance(load_encoding(), str) else ENCODING


def count_tokens(text: str) -> int:
    """Count the tokens of a text; a conversation's messages are counted again at every step, so counts are cached."""
    # Texts of LangChain's messages are of a subclass of str, which the cache would not match.
    return _count_cached(str(text))


@lru_cache(_CACHED_TEXTS)
def _count_cached(text: str) -> int:
    return count_batch([text])[0]


def count_batch(texts: Sequence[str]) -> list[int]:
    """Count the tokens of each of some texts, without a cache."""
    encoding = load_encoding()
    if isinstance(encoding, str):
        return list(map(estimate_tokens, texts))

    def count(text: str) -> int:
        pieces = (text[start : start + _MAX_CHARACTERS] for start in range(0, len(text), _MAX_CHARACTERS))
        return sum(len(encoding.encode_ordinary(piece)) for piece in pieces)

    # encode_ordinary_batch starts threads at every call, which costs more than the texts do.
    return list(map(count, texts))


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
    """Estimate the o200k_base tokens of a text from its characters: within a tenth on English and Chinese prose."""
    ascii_characters = len(text) if text.isascii() else sum(map(str.isascii, text))
    east_asian = 0 if text.isascii() else sum(character >= "\u2e80" for character in text)
    other = len(text) - ascii_characters - east_asian
    return max(1 if text else 0, round(ascii_characters / 4.2 + east_asian * 0.65 + other * 0.35))


@cache
def load_encoding() -> tiktoken.Encoding | str:
    """Load the vocabulary at the first call, or say why it cannot be loaded; tokens are then estimated.

    It is cached in tiktoken's `TIKTOKEN_CACHE_DIR`, or downloaded within 15 seconds.
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
