"""The seal of an index's derived files, which only the user who wrote them can make.

Native code reads Chroma's graph and trusts the numbers in it: a crafted graph can crash the process, or worse. A
checksum does not help, since it is in the index too. So the graph is used only if the seal in the manifest was made
with this user's key. Otherwise semantic search compares with every vector, and the next writer rebuilds the graph.
"""

from __future__ import annotations

import hmac
import json
import os
import secrets
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path

from platformdirs import user_config_path

from arag.retrieval.local.manifest import LocalManifest

KEY_VARIABLE = "ARAG_SEAL_KEY"
_KEY_BYTES = 32


def make_seal(manifest: LocalManifest) -> str:
    """Return the seal of the files that a manifest lists, in hexadecimal digits."""
    files = json.dumps(sorted(manifest.files.items()))
    variable = os.environ.get(KEY_VARIABLE)
    key = variable.encode() if variable else _key_in(user_config_path("arag", appauthor=False))
    return hmac.new(key, files.encode(), "sha256").hexdigest()


def is_sealed(manifest: LocalManifest) -> bool:
    """Return whether this user, or one with the same ARAG_SEAL_KEY, wrote the files that a manifest lists."""
    return hmac.compare_digest(manifest.seal.encode(), make_seal(manifest).encode())


@cache
def _key_in(folder: Path) -> bytes:
    """Return the key in a user's configuration folder, creating it if it does not exist.

    If it cannot be saved, the key lasts as long as this process.
    """
    file = folder / "seal.key"
    new = secrets.token_bytes(_KEY_BYTES)
    with suppress(OSError):
        if not file.exists():
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder, prefix=f"{file.name}.") as out:  # readable by the user only
                out.write(new)
                out.flush()
                os.fsync(out.fileno())
                with suppress(FileExistsError):  # another process was faster
                    os.link(out.name, file)
        kept = file.read_bytes()
        if len(kept) == _KEY_BYTES:
            return kept
    return new
