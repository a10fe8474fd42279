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
_MAIL_ADDRESS = re.compile(r"mailto:(.*)", re.IGNORECASE)
_LINE_END = re.compile(r"\\[nN]")
_ESCAPED = re.compile(r"\\([,;\\])")
_COMMON_NAME = re.compile(r";CN=(\"[^\"]*\"|[^;:]*)")


def invitation_text(text: str) -> str:
    """Return the events of a calendar as lines with the names of their fields."""
    unfolded = _FOLDED.sub("", text.replace("\r\n", "\n"))
    return "\n\n".join(map(_event_text, _EVENT.findall(unfolded)))


def _event_text(event: str) -> str:
    without_alarms = _ALARM.sub("", event)
    lines: list[str] = []
    for name, parameters, value in _LINE.findall(without_alarms):
        shown = _value(parameters, value.strip())
        if name in _NAMES and shown:
            lines.append(f"{_NAMES[name]}: {shown}")
    return "\n".join(lines)


def _value(parameters: str, value: str) -> str:
    time = _TIME.match(value)
    if time:
        return _time_text(time)
    address = _MAIL_ADDRESS.match(value)
    if address:
        return _person(parameters, address[1])
    plain = _LINE_END.sub("\n", value)
    return _ESCAPED.sub(r"\1", plain)


def _time_text(time: re.Match[str]) -> str:
    year, month, day, hour, minute, is_utc = time.groups()
    date = f"{year}-{month}-{day}"
    if not hour:
        return date
    zone = " UTC" if is_utc else ""
    return f"{date} {hour}:{minute}{zone}"


def _person(parameters: str, address: str) -> str:
    common_name = _COMMON_NAME.search(parameters)
    if common_name is None:
        return address
    name = common_name[1].strip('"')
    return f"{name} <{address}>"
