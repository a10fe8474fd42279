"""Invitations and appointments (iCalendar), as mails have them."""

from __future__ import annotations

import re

_FOLDED = re.compile(r"\r?\n[ \t]")
_LINE = re.compile(r"^([A-Z-]+)((?:;[^:\n]*)?):(.*)$", re.MULTILINE)
_TIME = re.compile(r"(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)\d\d(Z?))?$")
_EVENT = re.compile(r"BEGIN:(?:VEVENT|VTODO)\n(.*?)(?:END:(?:VEVENT|VTODO)|\Z)", re.DOTALL)
_ALARM = re.compile(r"BEGIN:VALARM\n.*?END:VALARM", re.DOTALL)
_NAMES = {
    "SUMMARY": "Event",
    "DTSTART": "Start",
    "DTEND": "End",
    "DUE": "Due",
    "LOCATION": "Location",
    "ORGANIZER": "Organizer",
    "ATTENDEE": "Attendee",
    "DESCRIPTION": "Description",
}
_COMMON_NAME = re.compile(r";CN=(\"[^\"]*\"|[^;:]*)")


def invitation_text(text: str) -> str:
    """Return the events of a calendar as lines with the names of their fields."""
    unfolded = _FOLDED.sub("", text.replace("\r\n", "\n"))
    events = [_event_lines(_ALARM.sub("", event)) for event in _EVENT.findall(unfolded)]
    return "\n\n".join("\n".join(lines) for lines in events)


def _event_lines(event: str) -> list[str]:
    lines: list[str] = []
    for name, parameters, value in _LINE.findall(event):
        shown = _value(parameters, value.strip())
        if name in _NAMES and shown:
            lines.append(f"{_NAMES[name]}: {shown}")
    return lines


def _value(parameters: str, value: str) -> str:
    time = _TIME.match(value)
    if time:
        year, month, day, hour, minute, is_utc = time.groups()
        date = f"{year}-{month}-{day}"
        return f"{date} {hour}:{minute}{' UTC' if is_utc else ''}" if hour else date
    address = re.sub(r"(?i)^mailto:", "", value)
    common_name = _COMMON_NAME.search(parameters)
    if common_name and address != value:
        return f"{common_name[1].strip(chr(34))} <{address}>"
    plain = re.sub(r"\\[nN]", "\n", address)
    return re.sub(r"\\([,;\\])", r"\1", plain)
