"""An index in memory: the plainest storage behind the ports, on which the same tests run as on the one in folders."""

from __future__ import annotations

import copy
import itertools
import re
import threading
import unicodedata
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from rapidfuzz import fuzz, process

from arag.errors import IndexLockedError, IndexNotFoundError
from arag.retrieval.backend import Counts, KeywordRanking, Manifest, Phrase, RankedChunk, keyword_weight
from arag.retrieval.exact import ExactVectors
from arag.retrieval.packing import keep_documents
from arag.retrieval.tokens import load_token_counter

WORD = re.compile(r"[^\W_]+")


def fold(text):
    return " ".join(text.split())


def bare(text):
    letters = (unicodedata.normalize("NFD", c) for c in unicodedata.normalize("NFC", text.lower()).replace("ς", "σ"))
    return "".join(c[0] if c[0].isascii() else unicodedata.normalize("NFC", c) for c in letters)


def count_words(keyword, text):
    """Count a keyword where no letter or digit continues it, apart from a plural's ending; the plainest way."""
    if not any(c.isalnum() and ord(c) < 0x2E80 for c in (keyword[0], keyword[-1])):
        return text.count(keyword)
    count, at = 0, text.find(keyword)
    while at >= 0:
        end = at + len(keyword)
        fits_before = not (is_letter(keyword[0]) and at and continues(text[at - 1]))
        endings = [e for e in ("es", "s", "") if text.startswith(e, end)] if is_letter(keyword[-1]) else [""]
        fits = [
            e for e in endings if not is_letter(keyword[-1]) or not continues(text[end + len(e) : end + len(e) + 1])
        ]
        if fits_before and fits:
            count += 1
            at = text.find(keyword, end + len(fits[0]))
        else:
            at = text.find(keyword, at + 1)
    return count


def is_letter(character):
    return character.isalnum() and ord(character) < 0x2E80


def continues(character):
    return bool(character) and is_letter(character)


class MemoryChunks:
    """Chunks and documents of one generation, in dictionaries."""

    def __init__(self):
        self.entries = {}  # documents by id
        self.chunks = {}  # by number
        self.vectors = {}  # by number, of those that wait for none
        self.former = {}  # vectors of chunks that are gone, by text
        self.next = 1

    def copy(self):
        other = copy.copy(self)
        for name in ("entries", "chunks", "vectors", "former"):
            setattr(other, name, dict(getattr(self, name)))
        return other

    # --- reading ---

    def mget(self, keys):
        by_id = {chunk.id: chunk for chunk in self.chunks.values()}
        return [by_id.get(key) for key in keys]

    def yield_keys(self, *, prefix=None):
        return (chunk.id for chunk in self.chunks.values() if chunk.id.startswith(prefix or ""))

    def numbered(self, numbers):
        return {n: self.chunks[n] for n in numbers if n in self.chunks}

    def ids(self, numbers):
        return {n: self.chunks[n].id for n in numbers if n in self.chunks}

    def numbers(self, keys):
        return sorted(n for n, chunk in self.chunks.items() if chunk.id in set(keys))

    def similar_ids(self, chunk_id, limit):
        keys = list(self.yield_keys())
        found = process.extract(chunk_id, keys, scorer=fuzz.ratio, score_cutoff=60, limit=limit)
        return [match[0] for match in found] or keys[:limit]

    def neighbours(self, chunk, reach):
        near = [c for c in self.chunks.values() if c.document_id == chunk.document_id]
        return sorted((c for c in near if abs(c.ordinal - chunk.ordinal) <= reach), key=lambda c: c.ordinal)

    def chunks_in_documents(self, document_ids):
        return {i: sum(chunk.document_id == i for chunk in self.chunks.values()) for i in document_ids}

    def chunks_of(self, document_ids):
        wanted = set(document_ids)
        return [c for c in self.chunks.values() if any(s.document_id in wanted for s in c.sections)]

    def documents(self, *, after=""):
        return iter([self.entries[i] for i in sorted(self.entries) if i > after])

    def document(self, document_id):
        return self.entries.get(document_id)

    def numbers_of(self, document_ids):
        wanted = set(document_ids)
        return sorted(n for n, c in self.chunks.items() if any(s.document_id in wanted for s in c.sections))

    def named(self, words, limit):
        names = {i: f"{i} {entry.title}".lower() for i, entry in self.entries.items()}
        found = sorted(i for i, name in names.items() if words and all(word.lower() in name for word in words))
        return found[:limit]

    def titled(self, titles, limit):
        for wanted in map(str.lower, titles):
            found = [
                (e.title, e.id)
                for e in self.entries.values()
                if e.title.lower() == wanted or e.title.lower().startswith(f"{wanted} (")
            ]
            yield [(i, t) for t, i in sorted(found)[:limit]]

    def fingerprints(self, document_ids):
        return {i: self.entries[i].fingerprint for i in document_ids if i in self.entries}

    def placed_vectors(self, numbers):
        for number in numbers:
            sentences = self.chunks[number].sentences
            yield number, [i for i, s in enumerate(sentences) if s.embedded], self.vectors[number]

    def embedded_chunks(self):
        for number in [number for number in self.chunks if number in self.vectors]:
            yield number, self.chunks[number], self.vectors[number]

    def counts(self):
        chunks = self.chunks.values()
        sentences = sum(len(chunk.embedded_texts()) for chunk in chunks)
        return Counts(len(self.entries), len(chunks), sentences, sum(chunk.tokens for chunk in chunks))

    # --- writing ---

    @contextmanager
    def transaction(self):
        before = self.copy()
        try:
            yield
        except BaseException:
            self.__dict__ = before.__dict__
            raise

    def mset(self, key_value_pairs):
        pairs = dict(key_value_pairs)
        self.mdelete(list(pairs))
        for chunk in pairs.values():
            self.chunks[self.next] = chunk
            self.next += 1

    def mdelete(self, keys):
        for number in [n for n, chunk in self.chunks.items() if chunk.id in set(keys)]:
            texts = self.chunks.pop(number).embedded_texts()
            self.former |= dict(zip(texts, self.vectors.pop(number, ()), strict=False))

    def in_shared_chunks(self, document_ids):
        shared = {s.document_id for c in self.chunks.values() if len(c.sections) > 1 for s in c.sections}
        return shared & set(document_ids)

    def add_documents(self, documents):
        self.entries |= {document.id: document for document in documents}

    def set_sources(self, sources):
        self.entries |= {i: replace(self.entries[i], source=s) for i, s in sources.items() if i in self.entries}

    def remove_documents(self, document_ids):
        for document_id in document_ids:
            self.entries.pop(document_id, None)

    def claim(self, limit, after=-1):
        waiting = [n for n in sorted(self.chunks) if n > after and n not in self.vectors]
        return [(n, self.chunks[n]) for n in waiting[:limit]]

    def set_vectors(self, vectors):
        self.vectors |= {number: np.array(array) for number, array in vectors}

    def add_embedded(self, chunks):
        for chunk, vectors in chunks:
            self.vectors[self.next] = np.array(vectors)
            self.chunks[self.next] = chunk
            self.next += 1

    def former_vectors(self, document_ids):
        found = dict(self.former)
        for number, chunk in self.chunks.items():
            found |= dict(zip(chunk.embedded_texts(), self.vectors.get(number, ()), strict=False))
        return found


class MemoryGeneration:
    """A generation that nobody writes to any more; it is its own keywords and words."""

    def __init__(self, manifest, chunks):
        self.manifest = manifest
        self.chunks = chunks
        self._texts = {n: fold(chunk.text).lower() for n, chunk in chunks.chunks.items()}
        self._words = {word for text in self._texts.values() for word in WORD.findall(bare(text))}

    def part(self, document_ids):
        """Copy these documents, and take the others out of their chunks: the plainest way."""
        allowed = set(document_ids)
        part = MemoryChunks()
        part.entries = {i: entry for i, entry in self.chunks.entries.items() if i in allowed}
        for number, chunk in self.chunks.chunks.items():
            ours = {s.document_id for s in chunk.sections} & allowed
            if len(ours) == len(chunk.sections):
                part.chunks[number] = chunk
                part.vectors[number] = self.chunks.vectors[number]
            elif ours:
                places = [
                    next(s.document_id for s in chunk.sections if s.start <= sentence.start < s.end) in ours
                    for sentence in chunk.sentences
                    if sentence.embedded
                ]
                part.chunks[number] = keep_documents(chunk, ours, count=load_token_counter().count_batch)
                part.vectors[number] = self.chunks.vectors[number][places]
        counts = part.counts()
        manifest = replace(self.manifest, documents=counts.documents, chunks=counts.chunks, sentences=counts.sentences)
        return MemoryGeneration(manifest, part)

    def keywords(self):
        return self

    def words(self):
        return self

    def sentences(self):
        return ExactVectors(self.chunks.placed_vectors(self.chunks.chunks), self.manifest, "memory")

    def __len__(self):
        return len(self._texts)

    def rank(self, keywords, top_k, *, within=None, by_coverage=False):
        texts = {n: text for n, text in self._texts.items() if within is None or n in within}
        counts = {n: {k: c for k in keywords if (c := text.count(fold(k).lower()))} for n, text in texts.items()}
        holding = {k: sum(k in found for found in counts.values()) for k in keywords}
        total = sum(bool(found) for found in counts.values())
        scores = {n: sum(count * len(fold(k)) for k, count in found.items()) for n, found in counts.items()}
        as_word = {}
        best = []
        if by_coverage:
            words = {k: {n: count_words(fold(k).lower(), text) for n, text in texts.items()} for k in keywords}
            as_word = {k: sum(c > 0 for c in words[k].values()) for k in keywords if holding[k]}
            used = {k: words[k] if as_word.get(k) else {n: counts[n].get(k, 0) for n in texts} for k in keywords}
            scores = dict.fromkeys(texts, 0.0)
            for k in keywords:
                if holding[k]:
                    numbers = list(texts)
                    occurrences = np.array([used[k][n] for n in numbers])
                    weights = keyword_weight(occurrences, as_word[k] or holding[k], len(texts))
                    for n, weight in zip(numbers, weights.tolist(), strict=True):
                        scores[n] += weight
        order = sorted(texts, key=lambda n: (-scores[n], self.chunks.chunks[n].id))
        found = [n for n in order if scores[n]]
        if by_coverage:
            best = [next(n for n in order if used[k][n]) for k in keywords if holding[k]]
        chosen = {*found[:top_k], *best}
        ranked = [RankedChunk(n, scores[n], counts[n]) for n in found if n in chosen]
        return KeywordRanking(ranked, holding, as_word, total)

    def chunks_holding(self, keywords):
        return [sum(fold(keyword).lower() in text for text in self._texts.values()) for keyword in keywords]

    def holds(self, word):
        return word in self._words

    def listed(self, words):
        return {word for word in words if self.holds(word)}

    def of_length(self, shortest, longest):
        return sorted(word for word in self._words if shortest <= len(word) <= longest)

    def holding_all(self, groups, limit, within=None):
        chunks = self.chunks.chunks if within is None else {n: self.chunks.chunks[n] for n in within}
        held = {n: {bare(word[0]) for word in WORD.finditer(c.text)} for n, c in chunks.items()}
        return [[n for n, words in held.items() if words.issuperset(group)][:limit] for group in groups]

    def spellings(self, phrases, limit):
        return [self._spell(phrase, limit) for phrase in phrases]

    def _spell(self, phrase: Phrase, limit):
        found = []
        looked_at = 0
        for chunk in self.chunks.chunks.values():
            words = list(WORD.finditer(chunk.text))
            forms = [bare(word[0]) for word in words]
            length = len(phrase.words)
            places = [i for i in range(len(words) - length + 1) if matches(forms[i : i + length], phrase)]
            if places and looked_at < limit:
                looked_at += 1
                found += dict.fromkeys(chunk.text[words[i].start() : words[i + length - 1].end()] for i in places)
        return found


def matches(forms, phrase):
    *first, last = phrase.words
    return forms[:-1] == first and (forms[-1].startswith(last) if phrase.is_prefix else forms[-1] == last)


class MemoryReader:
    def __init__(self, backend):
        self._backend = backend

    def stamp(self):
        return self._backend.manifest().generation

    def generation(self):
        return self._backend.current

    def close(self):
        pass


class MemoryDraft:
    publishes_early = True

    def __init__(self, backend):
        self._backend = backend
        self.chunks = backend.working

    @property
    def manifest(self):
        return self._backend.manifest()

    @property
    def published(self):
        return self._backend.current.chunks

    def waits_for_others(self):
        return False

    def prepare(self, sentences):
        pass

    def publish(self, manifest, *, rebuild=False, on_written=None):
        counts = self.chunks.counts()
        wanted = replace(
            manifest,
            documents=counts.documents,
            chunks=counts.chunks,
            sentences=counts.sentences,
            generation=self.manifest.generation,
        )
        old = self.published
        if rebuild or wanted != self.manifest or (old.entries, old.chunks) != (self.chunks.entries, self.chunks.chunks):
            manifest = replace(wanted, generation=wanted.generation + 1)
            self.chunks.former = {}
            self._backend.current = MemoryGeneration(manifest, self.chunks.copy())
            if on_written is not None:
                on_written(counts.sentences, counts.sentences)
        return True

    def renew(self):
        pass


class MemoryBackend:
    """An index in memory. What one process writes, its other threads see."""

    numbers = itertools.count(1)

    def __init__(self):
        self.location = f"memory {next(self.numbers)}"
        self.current = None
        self.working = MemoryChunks()
        self._lock = threading.Lock()

    def exists(self):
        return self.current is not None

    def manifest(self) -> Manifest:
        if self.current is None:
            raise IndexNotFoundError("no index in memory: make one with `arag ingest PATH... --index memory`")
        return self.current.manifest

    def size(self):
        return sum(len(chunk.text) for chunk in self.current.chunks.chunks.values())

    def reader(self):
        return MemoryReader(self)

    def make(self):
        pass

    @contextmanager
    def lock(self, *, shared=False):
        if not self._lock.acquire(blocking=False):
            raise IndexLockedError("the index in memory is being written to by another thread")
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def draft(self, begin):
        if self.current is None:
            self.current = MemoryGeneration(begin(), self.working.copy())
        yield MemoryDraft(self)

    def find_damage(self, *, locked=True):
        self.manifest()
        return []

    def repair(self, found):
        return 0
