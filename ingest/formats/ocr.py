"""The OCR process's part: reads pages of PDFs, and pictures, with the models of rapidocr, which are in its package."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pypdfium2
from numpy.typing import NDArray
from PIL import Image, ImageOps

from arag.ingest.formats.content import FormatError, reason
from arag.ingest.formats.ocr_layout import Box, arrange

_Picture: TypeAlias = NDArray[np.uint8]

_HEAD_BYTES = 1_030
_DPI = 170  # small print is read, and a page does not take too long
_MAX_SIDE = 3_000  # pixels of a page: the models need memory for each
_MAX_PICTURE_SIDE = 2_400  # of a picture, whose size on paper is not known
_MAX_THREADS = 4
_MIN_SCORE = 0.5  # of a line: what has a lower one is mostly a smudge or a drawing
_MIN_DENSITY = 0.5  # characters of a line, for each of its heights that it is long: fewer are of another script
_TALL = 1.5  # times as high as wide: a line of a page that lies on its side
_LINES_LOOKED_AT = 9  # the longest ones tell which way up a page is
_SIXTEEN_BITS = "I;16"
_TURNED = "180"  # as the model calls it


def count_pictures(path: str) -> int:
    """Return how many pictures a file has: a TIFF may have one for each page.

    Raises:
        FormatError: It is damaged or another kind of file.
    """
    try:
        with Image.open(path) as picture:
            is_tiff = picture.format == "TIFF"  # others have previews and films
            return getattr(picture, "n_frames", 1) if is_tiff else 1
    except Exception as error:
        raise FormatError("broken picture") from error


def read_page(path: str, number: int, cpu_seconds: float) -> tuple[str, bool]:
    """Read a page of a PDF, or a picture of a file, by OCR.

    Args:
        path: The file.
        number: The number of the page, from 1.
        cpu_seconds: The processor time after which the kernel ends this process.

    Returns:
        The text, and whether most of its lines could be read: the models do not know all scripts.

    Raises:
        FormatError: It cannot be read.
        MemoryError: It needs more memory than this process may use.
    """
    signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
    try:
        return _read(_open_page(path, number))
    except MemoryError:
        raise
    except Exception as error:
        if "bad_alloc" in str(error):  # so says ONNX Runtime
            raise MemoryError from error
        *_, last_line = reason(error).strip().splitlines() or [""]
        raise FormatError(last_line) from error
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _open_page(path: str, number: int) -> _Picture:
    with Path(path).open("rb") as data:
        if b"%PDF-" in data.read(_HEAD_BYTES):  # its name may end in anything
            return _render(path, number)
    with Image.open(path) as file:
        file.seek(number - 1)
        file.draft("RGB", (_MAX_PICTURE_SIDE, _MAX_PICTURE_SIDE))  # a JPEG is read smaller at once
        picture: Image.Image = file
        if file.mode.startswith(_SIXTEEN_BITS):
            picture = Image.fromarray((np.asarray(file) >> 8).astype(np.uint8))
        picture = ImageOps.exif_transpose(picture)
        picture.thumbnail((_MAX_PICTURE_SIDE, _MAX_PICTURE_SIDE))
        return np.asarray(_on_white(picture))


def _on_white(picture: Image.Image) -> Image.Image:
    if not picture.has_transparency_data:
        return picture.convert("RGB")
    layer = picture.convert("RGBA")
    white = Image.new("RGBA", layer.size, "white")
    return Image.alpha_composite(white, layer).convert("RGB")


def _render(path: str, number: int) -> _Picture:
    with pypdfium2.PdfDocument(path) as document:
        page = document[number - 1]
        scale = min(_DPI / 72, _MAX_SIDE / max(page.get_size()))
        return np.array(page.render(scale=scale).to_pil().convert("RGB"))


@cache
def _load_engine() -> Any:
    """Load the models from the package's own folder: a path that is given is never downloaded."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")  # as for the embedder
    import rapidocr

    models = Path(rapidocr.__file__).parent / "models"
    threads = min(os.cpu_count() or 1, _MAX_THREADS)
    return rapidocr.RapidOCR(
        params={
            "Global.log_level": "critical",
            "Global.max_side_len": _MAX_SIDE,
            "Global.text_score": 0.0,
            "EngineConfig.onnxruntime.intra_op_num_threads": threads,
            "Det.model_path": str(models / "PP-OCRv6_det_small.onnx"),
            "Cls.model_path": str(models / "ch_ppocr_mobile_v2.0_cls_mobile.onnx"),
            "Rec.model_path": str(models / "PP-OCRv6_rec_small.onnx"),
        }
    )


def _read(page: _Picture) -> tuple[str, bool]:
    # The engine keeps these options for the next call: so all are given each time.
    lines = _find_lines(page)
    if not lines:
        return "", True
    page = _turn_upright(page, lines)
    found = _load_engine()(page, use_det=True, use_cls=False, use_rec=True)
    if found.boxes is None:
        return "", False
    boxes: list[Box] = []
    for corners, text, score in zip(_straighten(found.boxes), found.txts, found.scores, strict=True):
        if score >= _MIN_SCORE:
            left, top = np.min(corners, axis=0).tolist()
            right, bottom = np.max(corners, axis=0).tolist()
            boxes.append(Box(left, top, right, bottom, " ".join(text.split())))
    read = [box for box in boxes if len(box.text) * box.height > _MIN_DENSITY * (box.right - box.left)]
    is_legible = 2 * len(read) >= len(lines)
    return arrange(box for box in boxes if box.text), is_legible


def _straighten(boxes: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the corners of lines as on a page that was not scanned askew."""
    along = boxes[:, 1] - boxes[:, 0]  # from the left to the right end
    angle = float(np.median(np.arctan2(along[:, 1], along[:, 0])))
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    straight: NDArray[np.float64] = boxes @ turn
    return straight


def _turn_upright(page: _Picture, lines: Sequence[_Picture]) -> _Picture:
    """Turn a page that lies on its side or stands on its head, as its longest lines tell."""
    lines = sorted(lines, key=lambda line: max(line.shape), reverse=True)[:_LINES_LOOKED_AT]
    tall = [line for line in lines if line.shape[0] > _TALL * line.shape[1]]
    if 2 * len(tall) > len(lines):
        page = np.ascontiguousarray(np.rot90(page))
        lines = [np.ascontiguousarray(np.rot90(line)) for line in lines]
    turned = 0
    for line in lines:
        found = _load_engine()(line, use_det=False, use_cls=True, use_rec=False)
        ((label, _),) = found.cls_res
        turned += label == _TURNED
    if 2 * turned > len(lines):
        page = np.ascontiguousarray(page[::-1, ::-1])
    return page


def _find_lines(page: _Picture) -> list[_Picture]:
    """Return the pictures of the lines of a page."""
    found = _load_engine()(page, use_det=True, use_cls=False, use_rec=False)
    lines: list[_Picture] = []
    for corners in [] if found.boxes is None else found.boxes:
        left, top = np.min(corners, axis=0).astype(int)
        right, bottom = np.max(corners, axis=0).astype(int)
        lines.append(np.ascontiguousarray(page[top:bottom, left:right]))
    return [line for line in lines if line.size]


SERVED = (count_pictures, read_page)
