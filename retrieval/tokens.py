"""Token counts: exact with tiktoken's o200k_base, or a documented estimate if its vocabulary is not available."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Sequence
from functools import cache, lru_cache

import tiktoken

ENCODING = "o200k_base"
ESTIMATE = "estimate"

_LOAD_SECONDS = 15.0  # tiktoken downloads its vocabulary without a time-out
_CACHED_TEXTS = 16_384
_MAX_CHARACTERS = 100_000  # of a text that tiktoken gets at once: it panics at a million spaces


class TokenCounter:
    """Counts tokens with `o200k_base`, or with `estimate` for the reason in `fault`.

    `count` caches: a conversation's messages are counted again at every step of the loop. `count_batch` does not.
    """

    def __init__(self, name: str, count_batch: Callable[[Sequence[str]], list[int]], fault: str = "") -> None:
        self.name = name
        self.fault = fault
        self.count_batch = count_batch
        self.count: Callable[[str], int] = lru_cache(_CACHED_TEXTS)(lambda text: count_batch([text])[0])


@cache
def load_token_counter() -> TokenCounter:
    """Return the process's token counter; the vocabulary is loaded at the first call.

    If the vocabulary is not cached (tiktoken's `TIKTOKEN_CACHE_DIR`) and cannot be downloaded within 15 seconds,
    tokens are estimated.
    """
    encoding = _load_encoding()
    if isinstance(encoding, str):
        return TokenCounter(ESTIMATE, lambda texts: [estimate_tokens(text) for text in texts], encoding)

    def count(text: str) -> int:
        pieces = (text[start : start + _MAX_CHARACTERS] for start in range(0, len(text), _MAX_CHARACTERS))
        return sum(len(encoding.encode_ordinary(piece)) for piece in pieces)

    # encode_ordinary_batch starts threads at every call, which costs more than the texts do.
    return TokenCounter(ENCODING, lambda texts: [count(text) for text in texts])


@cache
def warn_of_estimates() -> None:
    """Warn, once in a process, if token counts that are stored or compared are estimates."""
    fault = load_token_counter().fault
    if fault:
        warnings.warn(
            f"the vocabulary of {ENCODING} could not be loaded ({fault}); token counts are estimates. "
            "Set TIKTOKEN_CACHE_DIR to a folder that holds it for exact counts.",
            stacklevel=2,
        )


def count_tokens(text: str) -> int:
    """Count the tokens of a text."""
    # Texts of LangChain's messages are of a subclass of str, which the cache would not match.
    return load_token_counter().count(str(text))


def estimate_tokens(text: str) -> int:
    """Estimate the o200k_base tokens of a text from its characters: within a tenth on English and Chinese prose."""
    ascii_characters = len(text) if text.isascii() else sum(map(str.isascii, text))
    east_asian = 0 if text.isascii() else sum(character >= "\u2e80" for character in text)
    other = len(text) - ascii_characters - east_asian
    return max(1 if text else 0, round(ascii_characters / 4.2 + east_asian * 0.65 + other * 0.35))


def _load_encoding() -> tiktoken.Encoding | str:
    """Load the vocabulary, or say why it cannot be loaded."""
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
