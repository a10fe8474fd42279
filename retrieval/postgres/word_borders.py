"""Which occurrences of a keyword are words of their own, told by the characters around them."""

from __future__ import annotations

from collections.abc import Sequence

from arag.retrieval.keyword_file import SPACED_SCRIPTS

_ELSEWHERE = "\uffff"  # stands for what was cut out of a text: no character of a text


class WordBorders:
    """Counts a needle where it is not a part of a longer word; a plural still counts.

    It counts as `arag.retrieval.keyword_file` does.

    Args:
        needle: The needle, folded and in lower case.

    Attributes:
        matter: Whether what is around the needle matters.
        can_be_cut: Whether the pieces of a text between the needle's occurrences are enough to count.
    """

    def __init__(self, needle: str) -> None:
        self._needle = needle
        self._starts, self._ends = _is_letter(needle[0]), _is_letter(needle[-1])
        self.matter = self._starts or self._ends
        # Between two occurrences that overlap, there is no piece. That matters if the second one may be a word.
        overlaps = any(needle.endswith(needle[:length]) for length in range(1, len(needle)))
        self.can_be_cut = not overlaps or all(map(_is_letter, needle))

    def count(self, text: str) -> int:
        """Count the needle in a text, folded and in lower case."""
        count, at = 0, text.find(self._needle)
        while at >= 0:
            after = at + len(self._needle)
            if self._ends:
                after += next((len(ending) for ending in ("es", "s") if text.startswith(ending, after)), 0)
            is_word = not (self._ends and _is_letter(text[after : after + 1])) and not (
                self._starts and at > 0 and _is_letter(text[at - 1])
            )
            count += is_word
            at = text.find(self._needle, after if is_word else at + 1)
        return count

    def count_around(self, pieces: Sequence[str]) -> int:
        """Count the needle in a text that is told as a list.

        Args:
            pieces: The pieces between the needle's occurrences; of those longer than 4 characters, the first three and
                the last one. Or the whole text alone, if it cannot be cut.
        """
        if not self.can_be_cut:
            return self.count(pieces[0])
        return self.count(self._needle.join(p if len(p) < 4 else f"{p[:3]}{_ELSEWHERE}{p[3]}" for p in pieces))


def _is_letter(character: str) -> bool:
    """Return whether it is a letter or digit of a script that separates words."""
    return character.isalnum() and ord(character) < SPACED_SCRIPTS
