"""The questions about the archive, with answers computed from the invented world.

`hard_questions` are of ten kinds, four of each. `look_ups` ask for one fact each.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable
from typing import Any

from waterway_documents import (
    MUSEUM_HOURS,
    SPEED_LIMITS,
    briefing_topics,
    find_boat,
)
from waterway_files import Document
from waterway_long import CHAPTERS, SECTIONS
from waterway_world import (
    BOARD,
    FLOODED,
    MISPRINT,
    MONTHS,
    MOVED_ITEM,
    REPLACED_GATES,
    RETURNED,
    TRADE_SCHOOL,
    Meeting,
    World,
)

Question = dict[str, Any]
NOT_THERE = "not in the corpus"
KINDS = (
    "counting", "list", "negation", "comparison", "namesakes", "superseded", "absent", "structure", "languages",
    "arithmetic",
)  # fmt: skip


class _Sources:
    """Finds the documents that state a fact."""

    def __init__(self, documents: list[Document]) -> None:
        self._paths = [document.path for document in documents]

    def under(self, *starts: str) -> list[str]:
        """Return the paths that begin with one of the texts; each of these must be the beginning of a path."""
        found = []
        for start in starts:
            paths = [path for path in self._paths if path.startswith(start)]
            if not paths:
                raise ValueError(f"no document is called {start}")
            found += [path for path in paths if path not in found]
        return found


def hard_questions(world: World, documents: list[Document]) -> list[Question]:
    """Return the questions of ten kinds, four of each."""
    sources = _Sources(documents)
    builders: tuple[Callable[[World, _Sources], list[Question]], ...] = (
        _counting, _lists, _negation, _comparison, _namesakes, _superseded, _absent, _structure, _languages, _arithmetic,
    )  # fmt: skip
    questions = []
    for kind, build in zip(KINDS, builders, strict=True):
        for number, question in enumerate(build(world, sources), start=1):
            questions.append({"id": f"{kind}-{number}", "kind": kind, **question})
    return questions


def _text(question: str, answer: str, supporting: list[str], *aliases: str) -> Question:
    entry: Question = {"question": question, "answer": answer}
    if aliases:
        entry["answer_aliases"] = list(aliases)
    return {**entry, "supporting": supporting}


def _number(question: str, number: float, supporting: list[str], unit: str = "") -> Question:
    text = f"{number:,}" if isinstance(number, int) else f"{number:.1f}"
    answer = f"{text} {unit}".strip()
    return {"question": question, "answer": answer, "number": number, "supporting": supporting}


def _list(question: str, items: Iterable[tuple[str, ...]], supporting: list[str]) -> Question:
    """Return a question for a complete list; each item has one or more accepted names."""
    names = list(items)
    answers = [each[0] if len(each) == 1 else list(each) for each in names]
    return {
        "question": question,
        "answer": "; ".join(each[0] for each in names),
        "answers": answers,
        "supporting": supporting,
    }


def _plain(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return items of a list that have one name each."""
    return [(name,) for name in names]


def _firm_names(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return firms, without their article or trade, too."""
    return [tuple(dict.fromkeys((name, name.removeprefix("The ").removesuffix(" Passenger Boats")))) for name in names]


def _lock_names(full_names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return locks, also without their towns."""
    return [(name, name.partition(" at ")[0]) for name in full_names]


def _day_names(days: Iterable[dt.date]) -> list[tuple[str, ...]]:
    """Return days in several forms."""
    items = []
    for day in days:
        month = MONTHS[day.month - 1]
        items.append(
            (f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}", day.isoformat(), f"{day.day} {month}")
        )
    return items


# --- the ten kinds ---


def _counting(world: World, sources: _Sources) -> list[Question]:
    oak = [lock for lock in world.locks if lock.gates == "oak" and lock.full_name not in REPLACED_GATES]
    lost = sum(not motion.carried for meeting in _meetings(world, 2023) for motion in meeting.motions)
    changed = sum(boat.owner != boat.owner_before for boat in world.boats)
    poor = sum(any(rating == "poor" for _, rating in each.ratings) for each in world.inspections)
    return [
        _number(
            "How many of the 26 locks of the Sarn Waterway still had gates of oak at the end of 2024?",
            len(oak),
            sources.under(
                "locks/",
                "mail/2024-03-18",
                "mail/2024-11-21",
                "board/minutes-2023-09-05",
                "traffic/2023/report-2023-10",
                "board/minutes-2024-10-22",
            ),
        ),
        _number("How many motions did the Board reject in 2023?", lost, sources.under("board/minutes-2023")),
        _number(
            "How many boats had another owner in the register of April 2024 than in the one of April 2023?",
            changed,
            sources.under("registers/boats-"),
        ),
        _number(
            "At how many of the locks inspected in 2024 was at least one part rated poor?",
            poor,
            sources.under("inspections/2024"),
        ),
    ]


def _lists(world: World, sources: _Sources) -> list[Question]:
    firms = [firm.name for firm in world.firms if firm.town == "Callowmere"]
    trained = [each.name for each in world.people if each.training == TRADE_SCHOOL and each.role != "lock keeper"]
    shown = [each.name for each in world.exhibits if each.donor == "Barnabas Crake" and each.room != "Store"]
    return [
        _list(
            "Which firms of the waterway's directory have their seat in Callowmere today?", _firm_names(firms), sources.under("firms/")
        ),
        _list(
            "Which people who have a page of their own in the staff magazine, lock keepers aside, were trained at the "
            "technical school in Kestwold?",
            _plain(trained),
            sources.under("people/"),
        ),
        _list(
            "Which locks' keeper's cottages had water inside them in the flood of February 2024?",
            _lock_names(FLOODED),
            sources.under(
                "traffic/2024/report-2024-02", "mail/2024-02-11", "mail/2024-02-14", "board/minutes-2024-03-05",
                "annual-reports/annual-report-2024",
            ),
        ),
        _list(
            "Which objects of the museum were given by the man who looks after the horses of the horse boats and are on show, "
            "that is, not in the store?",
            _plain(shown),
            sources.under("museum/catalogue", "people/barnabas-crake"),
        ),
    ]  # fmt: skip


def _negation(world: World, sources: _Sources) -> list[Question]:
    no_yard = [town.name for town in world.towns if town.boatyard != "working"]
    all_carried = [meeting for meeting in _meetings(world, 2024) if all(motion.carried for motion in meeting.motions)]
    unpowered = [lock for lock in world.locks if lock.district == "Hollin Arm" and lock.drive != "electric"]
    unpaid = [firm.name for firm in world.firms if not _has_paid(world, firm.name)]
    return [
        _list(
            "Which towns on the Sarn Waterway do not have a boatyard at work today?",
            _plain(no_yard),
            sources.under("towns/"),
        ),
        _list(
            "On which dates in 2024 did the Board meet without rejecting any motion?",
            _day_names(meeting.date for meeting in all_carried),
            sources.under("board/minutes-2024"),
        ),
        _list(
            "Which locks on the Hollin Arm are not electric, but worked by hand or hydraulically?",
            _lock_names(lock.full_name for lock in unpowered),
            sources.under(
                "locks/holly", "locks/staircase", "locks/walnut", "locks/plumb", "locks/star", "locks/quarry"
            ),
        ),
        _list(
            "Which firms of the directory had not paid the mooring levy of 2024 by the end of that year?",
            _firm_names(unpaid),
            sources.under("registers/mooring-levy", "firms/"),
        ),
    ]


def _comparison(world: World, sources: _Sources) -> list[Question]:
    deepest = max(world.locks, key=lambda lock: lock.rise)
    busiest = _only_best(
        [
            (row.up + row.down, row.month)
            for row in world.traffic
            if row.year == 2024 and row.lock.startswith("Bishop's")
        ]
    )
    callowmere = {firm.name for firm in world.firms if firm.town == "Callowmere"}
    _, oldest = _only_best([(-boat.built, boat.name) for boat in world.boats if boat.owner in callowmere])
    missed = [(sum(member in meeting.apologies for meeting in world.meetings), member) for member in BOARD]
    return [
        _text(
            "Which lock of the Sarn Waterway lifts boats the most?",
            deepest.full_name,
            sources.under("locks/"),
            deepest.name,
        ),
        _text(
            "In which month of 2024 did most boats, up and down together, pass Bishop's Lock?",
            MONTHS[busiest[1] - 1],
            sources.under("traffic/2024"),
        ),
        _text(
            "Which is the oldest boat that belonged, in April 2024, to a firm with its seat in Callowmere?",
            oldest,
            sources.under("registers/boats-2024", "firms/"),
        ),
        _text(
            "Which member of the Board missed most of its meetings in 2023 and 2024 together?",
            _only_best(missed)[1],
            sources.under("board/minutes-"),
        ),
    ]


def _namesakes(world: World, sources: _Sources) -> list[Question]:
    cook = world.person("Maren Tollick", "cook")
    heron = find_boat(world, "Heron", "Passenger boats")
    mill = world.lock("Mill Lock at Ottersby")
    timber = world.firm("Brannock Timber")
    return [
        _text(
            "In which town was the Maren Tollick born who cooks on a boat?",
            cook.birthplace,
            sources.under("people/maren-tollick-ship"),
        ),
        _number(
            "In which year was the Heron built that takes passengers?",
            heron.built,
            sources.under("boats/heron-", "registers/"),
        )
        | {"answer": str(heron.built)},
        _text(
            "Who keeps the Mill Lock of the Fenmoor Cut, going by the page of January 2023?",
            mill.keeper,
            sources.under("locks/mill-lock-at-ottersby"),
        ),
        _number(
            "How many people does the firm called Brannock employ that deals in wood?",
            timber.employees,
            sources.under("firms/brannock-timber"),
        ),
    ]


def _superseded(world: World, sources: _Sources) -> list[Question]:
    right = next(row for row in world.traffic if (row.year, row.month, row.lock) == MISPRINT[:3])
    return [
        _number(
            "How fast may a boat of 24 metres go on the Hollin Arm at the end of 2024?",
            SPEED_LIMITS[2024],
            sources.under("rules/bye-laws-2022", "rules/amendment-2024"),
            "km/h",
        ),
        _number(
            "How many tonnes really passed Salt Lock in April 2024?",
            right.tonnes,
            sources.under("traffic/2024/report-2024-05"),
            "tonnes",
        ),
        _text(
            "Who chairs the Safety Committee at the end of 2024?",
            "Zora Wintle",
            sources.under("board/minutes-2024-09-03"),
        ),
        _text(
            "When does the waterway museum close on weekdays in the winter that begins in November 2024?",
            MUSEUM_HOURS[2024],
            sources.under("museum/notice-2024"),
            "15:45",
            "3:45 pm",
        ),
    ]


def _absent(_world: World, _sources: _Sources) -> list[Question]:
    questions = (
        "How much did the repainting of the swing bridge at Inglesay in May 2024 cost?",
        "Who is the deputy keeper of Lantern Lock?",
        "How many metres long is the Dunsilver tunnel?",
        "Which firm will dredge the Fenmoor Cut in 2026?",
    )
    return [{"question": question, "answer": NOT_THERE, "absent": True, "supporting": []} for question in questions]


def _structure(_world: World, sources: _Sources) -> list[Question]:
    year, quarter, _, sheet = MOVED_ITEM
    slide = 2 + briefing_topics(2024, 10).index("Reporting near misses")
    section = 1 + [name for name, _ in SECTIONS].index("Winter working")
    chapter = 1 + [name for name, _ in CHAPTERS].index("War and ice")
    return [
        _number(
            "In which chapter, by its number, does the history of the waterway tell of bread that dogs drew over the ice?",
            chapter,
            sources.under("books/history"),
        ),
        _text(
            f"In the accounts of the third quarter of {year}, on which sheet is the hire of the dredger?",
            sheet,
            sources.under(f"accounts/{year}-q{quarter}"),
        ),
        _number(
            "On which slide of the safety briefing of October 2024, counting the cover as the first, is there a table?",
            slide,
            sources.under("safety/briefing-2024-10"),
        ),
        _text(
            "Under which numbered heading of the keepers' handbook is it said when a lock is closed because of ice?",
            f"{section}.2 In detail",
            sources.under("books/handbook"),
            f"{section}.2",
        ),
    ]


def _languages(_world: World, sources: _Sources) -> list[Question]:
    return [
        _text(
            "What made the ferry cable at Fenmoor break?",
            "the trunk of a poplar",
            sources.under("letters/assureur"),
            "a poplar trunk",
            "a poplar",
        ),
        _text(
            "What was mixed into the mortar of the Dunsilver tunnel's bricks?",
            "rye flour",
            sources.under("letters/gutachten"),
        ),
        _text(
            "Which animal is engraved on the back of one of the lock tokens that the museum sent abroad?",
            "a dragonfly",
            sources.under("letters/guest-from-linhe"),
        ),
        _text(
            "With what had somebody greased the lower bearing of the pump at Kestwold?",
            "butter",
            sources.under("letters/ingenieria"),
        ),
    ]


def _arithmetic(world: World, sources: _Sources) -> list[Question]:
    tonnes = sum(
        row.tonnes
        for row in world.traffic
        if row.year == 2024 and row.month in {7, 8, 9} and row.lock == "Grain Lock at Marlbridge"
    )
    fees = dict.fromkeys((2023, 2024), 0)
    for item in world.items:
        if item.name == "Mooring fees":
            fees[item.year] += item.amount
    lengths = [boat.length for boat in world.boats if boat.owner == "Merrow Sand and Gravel"]
    average = round(sum(lengths) / len(lengths), 1)
    unpaid = sum(each.fee for each in world.moorings if each.town == "Garth Hollin" and each.paid == "no")
    return [
        _number(
            "How many tonnes passed Grain Lock in July, August and September 2024 together?",
            tonnes,
            sources.under("traffic/2024/report-2024-07", "traffic/2024/report-2024-08", "traffic/2024/report-2024-09"),
            "tonnes",
        ),
        _number(
            "By how many crowns did the Authority's income from mooring fees in the whole of 2024 differ from that of 2023?",
            abs(fees[2024] - fees[2023]),
            sources.under("accounts/"),
            "crowns",
        ),
        _number(
            "What was the average length, to a tenth of a metre, of the boats of all kinds that Merrow Sand and Gravel owned in "
            "April 2024?",
            average,
            sources.under("registers/boats-2024"),
            "metres",
        )
        | {"number": {"value": average, "tolerance": 0.05}},
        _number(
            "How many crowns of yearly fees are unpaid in 2024 for the moorings at Garth Hollin?",
            unpaid,
            sources.under("registers/moorings-2024"),
            "crowns",
        ),
    ]


def _meetings(world: World, year: int) -> list[Meeting]:
    return [meeting for meeting in world.meetings if meeting.date.year == year]


def _has_paid(world: World, firm: str) -> bool:
    return any(payment.firm == firm and payment.remark != RETURNED for payment in world.payments)


def _only_best(values: list[tuple[int, Any]]) -> tuple[int, Any]:
    """Return the largest of values that no other equals."""
    ordered = sorted(values, key=lambda value: value[0], reverse=True)
    if ordered[0][0] == ordered[1][0]:
        raise ValueError(f"two are equal: {ordered[:2]}")
    return ordered[0]


# --- look-ups ---

# Question, answer, other accepted answers, and the beginning of the document's path.
_FACTS: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("What does the hydrologist use to gauge how much it has rained?", "a silver christening cup", ("a christening cup",), "people/maren-tollick-hydro"),
    ("Beneath what had a boat's lost steering arm been lying when the curator of the Sarn Waterway's museum came across it?", "a chicken house", ("a henhouse",), "people/perdita-lunn"),
    ("What did the boat builder at Ottersby make as her very first piece of work?", "a coffin", ("a coffin for the harbour master",), "people/linnet-ashdown"),
    ("Which instrument was brought up from the bottom of the Marl Basin piece by piece?", "a church organ", ("an organ",), "people/rufus"),
    ("From where did the lights come that the electrician put up underground at Dunsilver?", "a circus", ("from a circus",), "people/jonas-wick"),
    ("What did the head of the Board do for a living before an accident?", "trapeze artist", (), "people/agatha"),
    ("Which juice was used to show where a lock was losing water?", "beetroot juice", ("beetroot",), "people/zillah"),
    ("What kind of book did a watchman compile on the job at night?", "a dictionary of curses", ("a dictionary of 900 boat people's curses", "dictionary"), "people/crispin"),
    ("What did the inventor of a hinged rake get for it?", "a barrel of cider", ("cider",), "people/honor"),
    ("Out of what was the weathercock on a chapel roof made?", "forty worn-out mooring rings", ("mooring rings", "old mooring rings"), "people/torquil"),
    ("What prehistoric find was made by the people who worked on the path along the water?", "a mammoth tooth", ("a mammoth's tooth",), "annual-reports/annual-report-2023"),
    ("What cargo lay on the Constance when she went down at her berth?", "wet wool", ("wool",), "boats/constance-sw-102"),
    ("Which boat once housed someone who treated teeth?", "the Larkspur", ("Larkspur",), "boats/larkspur-sw-159"),
    ("For which large animal was a freight boat's entrance made tall enough?", "a giraffe", ("giraffe",), "boats/juniper"),
    ("Who tuned the whistle of an excursion steamer?", "the organist of Kestwold", ("Kestwold's organist",), "boats/sarn-belle"),
    ("What piece of ancient footwear did a working boat's crew dig out of the mud?", "a Roman sandal", ("a sandal",), "boats/mudlark"),
    ("Why did a passenger boat come first in a race of 1928?", "all others ran aground", ("the other boats ran aground", "because all others ran aground"), "boats/dragonfly"),
    ("What hull was put together by female riveters?", "the Umber", ("Umber",), "boats/umber"),
    ("Which old-fashioned equipment in her shop front identifies the chandlers of Eskerly?", "a brass diver's helmet", ("a diver's helmet",), "firms/brannock-sons"),
    ("What are customers called who travel free with an excursion company once a year?", "Rose", ("people named Rose",), "firms/oddie"),
    ("Which artificial part of a body did the museum buy?", "a glass eye", ("a bargeman's glass eye",), "annual-reports/annual-report-2022"),
    ("What pigment goes into the red of the sign painters?", "brick dust", ("brick dust of the old kilns",), "firms/pell"),
    ("What birds may not be kept near the berths of one town?", "cockerels", ("cocks", "roosters"), "towns/ottersby"),
    ("What were the two beasts called that used to turn a bridge?", "Prudence and Amos", (), "towns/inglesay"),
    ("What does a keeper put up to show that nobody will be at the lock for a while?", "a red broom", (), "books/handbook"),
    ("What was inside the strongbox lifted out of the Marl Basin in spring 2024?", "a love letter", (), "mail/2024-05-27"),
    ("What did the thieves of the ferry bell leave behind?", "a lemon cake", ("a cake", "cake"), "mail/2023-10-09"),
    ("Which brass instrument did the water bailiff take away after a boat race?", "a trombone", ("trombone",), "mail/2024-06-24"),
    ("On which material did the first company of the Sarn Waterway print its share certificates?", "sailcloth", (), "books/history"),
    ("Which woman swallowed a legal document before a judge?", "Temperance Rook", (), "books/history"),
    ("Which dogs carried food to a frozen-in town?", "Saint Bernards", ("St Bernards", "St. Bernards"), "books/history"),
    ("What vanished from a statue and came afterwards by post?", "its left foot", ("the left foot", "a foot"), "traffic/2023/report-2023-11"),
)  # fmt: skip


def look_ups(world: World, documents: list[Document]) -> list[Question]:
    """Return the questions for one fact each; the last eight need two documents."""
    sources = _Sources(documents)
    questions = []
    for question, answer, aliases, start in _FACTS:
        questions.append(_text(question, answer, sources.under(start), *aliases))
    questions += _two_hops(world, sources)
    return [{"id": f"look-up-{number:02}", "kind": "look-up", **each} for number, each in enumerate(questions, start=1)]


def _two_hops(world: World, sources: _Sources) -> list[Question]:
    cuckoo = world.person(world.lock("Cuckoo Lock at Callowmere").keeper)
    reed = world.person(world.lock("Reed Lock at Fenmoor").keeper)
    widow = world.person(world.lock("Widow's Lock at Inglesay").keeper)
    inn = world.town(world.firm("Quillet Instruments").town).inn
    market = world.town(world.firm("Sarn Tile Works").town).market_day
    charter = world.town(world.person("Perdita Lunn").birthplace).charter
    perpetua = find_boat(world, "Perpetua", "Cargo boats")
    sarn_belle = find_boat(world, "Sarn Belle", "Passenger boats")
    keepers = "people/keepers-"
    return [
        _text(
            "In which town was the person born who keeps Cuckoo Lock?",
            cuckoo.birthplace,
            sources.under("locks/cuckoo", keepers),
        ),
        _text("What does the keeper of Reed Lock do for pleasure?", reed.hobby, sources.under("locks/reed", keepers)),
        _text(
            "In which year was the keeper of Widow's Lock born?",
            str(widow.born),
            sources.under("locks/widows", keepers),
        ),
        _text(
            "Where would boat people drink in the town of the company that names a device after a cat?",
            inn,
            sources.under("firms/quillet", "towns/kestwold"),
        ),
        _text(
            "On which day is the market held in the town where roof tiles bear the print of a dog's foot?",
            market,
            sources.under("firms/sarn-tile", "towns/brethwick"),
        ),
        _text(
            "When did the home town of the curator of the Sarn Waterway's museum get its charter?",
            str(charter),
            sources.under(
                "people/perdita", f"towns/{world.person('Perdita Lunn').birthplace.lower().replace(' ', '-')}"
            ),
        ),
        _text(
            "In which town is the home mooring, in 2024, of the boat whose tiller was lost for a quarter of a century?",
            perpetua.home,
            sources.under("boats/perpetua", "registers/boats-2024"),
        ),
        _text(
            "To whom did the steamer with the two-note whistle belong in April 2024?",
            sarn_belle.owner,
            sources.under("boats/sarn-belle", "registers/boats-2024"),
        ),
    ]
