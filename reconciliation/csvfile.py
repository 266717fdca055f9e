"""A file of records as somebody else's program wrote it: encoding, delimiter and rows, within bounds. Pure.

Nothing in a file is believed to be well made: a row that cannot be read is told with its line and the reason, and
takes no other with it.
"""

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

MAX_BYTES = 10 * 1024 * 1024
MAX_LINES = 100_000
MAX_COLUMNS = 200
MAX_FIELD = 10_000  # characters
DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_LOOKED_AT = 64 * 1024  # characters in which the header is looked for
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class NotReadable(Exception):
    """The file as a whole cannot be read; `code` is empty_file, too_large, not_text, no_header or too_many_lines."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What a file says. `guessed`: it is not UTF-8, so it was taken for Windows' western encoding."""

    text: str
    encoding: str
    delimiter: str
    header: tuple[str, ...]

    @property
    def guessed(self) -> bool:
        return self.encoding == "cp1252"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row: `line` is where it begins in the file (the header is 1); `problem` why it cannot be read, or empty."""

    line: int
    values: tuple[str, ...]
    problem: str = ""


def decode(*, content: bytes) -> tuple[str, str]:
    """The text and its encoding: utf-8-sig, utf-8 or cp1252. Raises NotReadable."""
    if not content.strip(b"\xef\xbb\xbf \t\r\n"):
        raise NotReadable("empty_file")
    if len(content) > MAX_BYTES:
        raise NotReadable("too_large")
    if content.startswith((b"\xff\xfe", b"\xfe\xff")) or content[:4096].count(b"\0") > 8:
        raise NotReadable("not_text")
    encodings = ("utf-8-sig",) if content.startswith(b"\xef\xbb\xbf") else ("utf-8", "cp1252")
    for encoding in encodings:
        try:
            return content.decode(encoding), encoding
        except UnicodeDecodeError:
            continue
    raise NotReadable("not_text")


def _reader(lines: Iterable[str], delimiter: str) -> Iterator[list[str]]:
    return csv.reader(lines, delimiter=delimiter, strict=True)


def _first(head: str, delimiter: str) -> list[str]:
    try:
        return next(_reader(io.StringIO(head, newline=""), delimiter), [])
    except csv.Error:
        return []


def read(*, content: bytes, delimiter: str = "") -> Text:
    """Decode a file and find its header; the delimiter is the one that cuts the header into most parts. Raises
    NotReadable."""
    text, encoding = decode(content=content)
    head = text[:_LOOKED_AT]
    if not delimiter:
        delimiter = max(DELIMITERS, key=lambda one: len(_first(head, one)))
    header = tuple(" ".join(one.replace("\0", " ").split())[:100] for one in _first(head, delimiter))
    if not 2 <= len(header) <= MAX_COLUMNS or sum(map(bool, header)) < 2:
        raise NotReadable("no_header")
    if text.count("\n") + 1 > MAX_LINES + 1 or text.count("\r") > MAX_LINES + 1:
        raise NotReadable("too_many_lines")
    return Text(text=text, encoding=encoding, delimiter=delimiter, header=header)


def rows(*, text: str, delimiter: str, width: int) -> Iterator[Row]:
    """Every row after the header, but for empty ones. Raises nothing: what cannot be read is a row with a problem."""
    source = io.StringIO(text, newline="")
    reader = csv.reader(source, delimiter=delimiter, strict=True)
    begins = 1
    while True:
        try:
            values = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            yield Row(line=begins, values=(), problem=_broken(begins, reader.line_num, str(error)))
            begins = reader.line_num + 1
            continue
        here, begins = begins, reader.line_num + 1
        if here > 1 and any(value.strip() for value in values):
            yield Row(line=here, values=tuple(values), problem=_misshapen(values, width))


def _broken(first: int, last: int, error: str) -> str:
    lines = f"line {first}" if last <= first else f"lines {first} to {last}"
    if "field limit" in error or "unexpected end" in error:
        return f"A quotation mark is opened and not closed; it swallowed {lines}."
    return f"The quotation marks on {lines} do not match."


def _misshapen(values: Sequence[str], width: int) -> str:
    if len(values) != width:
        return f"It has {len(values)} columns and the header has {width}."
    if any("\0" in value for value in values):
        return "It holds a character that no text can hold."
    if any(len(value) > MAX_FIELD for value in values):
        return f"A column holds more than {MAX_FIELD:,} characters."
    return ""


def defused(value: object) -> str:
    """A value for a file that a spreadsheet may open: text that it would take for a formula is led by an apostrophe."""
    text = str(value).replace("\0", "")
    return f"'{text}" if text.lstrip(" \u00a0").startswith(_FORMULA) or text.startswith(_FORMULA) else text


def written(*, header: Sequence[str], lines: Iterable[Sequence[object]]) -> Iterator[str]:
    """A file of ours, piece by piece, formulas defused; the first piece carries the mark that says UTF-8."""
    yield "\ufeff"
    yield _line(header)
    for line in lines:
        yield _line(line)


def _line(values: Sequence[object]) -> str:
    out = io.StringIO()
    csv.writer(out).writerow([defused(one) for one in values])
    return out.getvalue()
