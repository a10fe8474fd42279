"""The documents of the archive: what the Authority's office, museum and Board wrote about the invented world."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from random import Random

from waterway_files import Block, Document, Heading, Notes, Table
from waterway_letters import letters
from waterway_long import long_documents
from waterway_world import (
    AUTHORITY,
    KINDS,
    LEVY_RATES,
    MISPRINT,
    MONTHS,
    REPLACED_GATES,
    SEED,
    TRADE_SCHOOL,
    Boat,
    Firm,
    Inspection,
    Lock,
    Meeting,
    Person,
    Town,
    World,
)

OFFICE = "Office of the Sarn Waterway Authority"


def build_documents(world: World) -> list[Document]:
    """Return all documents, in the order of their paths."""
    documents = [
        *_lock_pages(world),
        *_old_lock_pages(world),
        *_town_pages(world),
        *_firm_pages(world),
        *_people_pages(world),
        *_boat_pages(world),
        *_registers(world),
        *_traffic_reports(world),
        *_accounts(world),
        *_minutes(world),
        *_inspections(world),
        *_rules(),
        *_briefings(),
        *_mails(),
        *letters(),
        *long_documents(world),
    ]
    return sorted(documents, key=lambda document: document.path)


def _slug(text: str) -> str:
    letters_only = [character if character.isalnum() else "-" for character in text.lower().replace("'", "")]
    return "-".join(part for part in "".join(letters_only).split("-") if part)


def _rng(path: str) -> Random:
    return Random(f"{SEED} {path}")


# --- locks ---

_RISES = (
    "Boats are lifted {metres} m in the chamber.",
    "The fall from the upper to the lower pound is {centimetres} centimetres.",
    "Between the two water levels lie {centimetres} cm.",
    "A boat that goes up here gains {metres} metres of height.",
)
_GATES = {
    "oak": (
        "The gates are of oak.",
        "Both pairs of leaves are oaken, with iron straps.",
        "Its gates were built of oak from the Harrowdene woods.",
        "Gates: timber (oak), tarred every third year.",
    ),
    "steel": (
        "The gates are of welded steel.",
        "Steel gates were fitted long ago in place of wooden ones.",
        "Both pairs of leaves are steel plates on a frame; only the balance beams are oak.",
        "Gates: steel, painted grey.",
    ),
    "greenheart": (
        "The gates are of greenheart, a timber that worms leave alone.",
        "Gates: greenheart; oak was considered too soft for this water.",
        "Its leaves were made of greenheart shipped as deck cargo.",
    ),
}
_DRIVES = {
    "hand": (
        "It is worked by hand with a windlass.",
        "Keepers push the beams with their own weight; there is no machinery.",
        "Paddles and gates move by muscle alone.",
    ),
    "hydraulic": (
        "Hydraulic rams open and close the leaves.",
        "The gates move by oil pressure from a hydraulic pump in the hut.",
    ),
    "electric": (
        "Electric motors drive gates and paddles.",
        "The keeper presses a button; the motors run on mains current.",
        "The whole lock is electrically worked.",
    ),
}
_OPENINGS = (
    "The first boat went through in {year}.",
    "It was opened to traffic in {year}.",
    "The date stone over the tail gate says {year}.",
)
_KEEPING = (
    "The keeper is {keeper}.",
    "{keeper} keeps the lock and lives in the cottage beside it.",
    "Since some years the keeper's post has been held by {keeper}.",
)
_COLOUR = (
    "A row of pollard willows shades the landing stage.",
    "Ducks nest in the overflow culvert and hold up the paddles in May.",
    "The cottage has a porch made of old rudder posts.",
    "Fishing is allowed below the tail gate but not from the beams.",
    "An iron hook in the wall marks the level of the great flood.",
    "A bench remembers a family of boat people.",
    "Boats wait at the stage downstream, with the stem to the wind.",
    "The towpath changes sides here by a narrow footbridge.",
    "In dry summers the side pond saves a third of each lockful.",
    "The bollards are grooved by a century of wet ropes.",
    "Children fish for crayfish between the stones.",
    "A brick hut holds the stop planks and a stretcher.",
)


def _lock_pages(world: World) -> list[Document]:
    pages = []
    for lock in world.locks:
        suffix = "md" if lock.number % 2 else "html"
        path = f"locks/{_slug(lock.full_name)}.{suffix}"
        pages.append(_lock_page(lock, path))
    return pages


def _lock_page(lock: Lock, path: str) -> Document:
    rng = _rng(path)
    sentences = [
        rng.choice(_RISES).format(metres=f"{lock.rise / 100:.2f}", centimetres=lock.rise),
        rng.choice(_GATES[lock.gates]),
        rng.choice(_DRIVES[lock.drive]),
        rng.choice(_OPENINGS).format(year=lock.opened),
        rng.choice(_KEEPING).format(keeper=lock.keeper),
        *rng.sample(_COLOUR, 4),
    ]
    rng.shuffle(sentences)
    closures = []
    for year in rng.sample(range(2012, 2023), 4):
        reason = rng.choice(("ice", "repair of a paddle", "low water", "dredging below", "a sunken skiff", "painting"))
        closures.append((year, rng.choice(MONTHS), rng.randrange(1, 19), reason))
    closures.sort(key=lambda row: (row[0], MONTHS.index(row[1])))
    blocks: list[Block] = [
        f"{lock.name} is lock number {lock.number} of the Sarn Waterway. It lies at {lock.town}, in the district "
        f"{lock.district}. This page shows the state of January 2023.",
        " ".join(sentences[:5]),
        Heading("Description"),
        " ".join(sentences[5:]),
        f"The chamber takes boats of up to {lock.length:.1f} metres.",
        Heading("Closures"),
        Table(("Year", "Month", "Days closed", "Reason"), tuple(closures)),
        "Boats longer than the chamber must be unloaded and split. The keeper's log is open to visitors on request.",
    ]
    return Document(path, lock.full_name, dt.date(2023, 1, 9), OFFICE, tuple(blocks))


def _old_lock_pages(world: World) -> list[Document]:
    """Pages of an older site about five of the locks: nearly the same texts, with the keepers of that time."""
    keepers = ("Old Tom Garrick", "Minnie Sharples", "Eustace Pole", "Dora Kempthorne", "Walter Inchbold")
    pages = []
    for lock, keeper in zip(world.locks[2:24:5], keepers, strict=True):
        path = f"old-site/{_slug(lock.full_name)}-2009.html"
        page = _lock_page(replace(lock, keeper=keeper), path)
        first = (
            f"{lock.name} at {lock.town}, district {lock.district}. This page of the old site shows the state of 2009."
        )
        blocks = tuple(
            block
            for block in (first, *page.blocks[1:])
            if not isinstance(block, Table) and block != Heading("Closures")
        )
        pages.append(replace(page, title=f"{lock.full_name} (old site)", date=dt.date(2009, 5, 4), blocks=blocks))
    return pages


# --- towns ---

_YARD = {
    "working": (
        "The boatyard on the basin still builds and repairs boats.",
        "Hammers can be heard from the yard, where wooden hulls are laid down to this day.",
        "A yard with two slips serves boats of every size.",
    ),
    "closed": (
        "There was a boatyard here until {year}; the sheds are flats today.",
        "The last hull left the town's slip in {year}, and the yard has been a car park since.",
        "In {year} the boatyard went out of business and was never opened again.",
    ),
    "never": (
        "The town never had a yard: boats in need of repair are towed elsewhere.",
        "No boat was ever built here, since the ground along the quay is rock.",
        "Shipwrights from the neighbouring towns do the repairs, as there is no yard.",
    ),
}


def _town_pages(world: World) -> list[Document]:
    pages = []
    for place, town in enumerate(world.towns):
        path = f"towns/{_slug(town.name)}.{'html' if place % 3 else 'docx'}"
        pages.append(_town_page(town, world, path))
    return pages


def _town_page(town: Town, world: World, path: str) -> Document:
    rng = _rng(path)
    census = []
    people = town.population
    for year in (2021, 2011, 2001, 1991, 1981):
        census.append((year, people, rng.randrange(people // 5, people // 3)))
        people = people * rng.randrange(94, 108) // 100
    locks = ", ".join(lock.name for lock in world.locks if lock.town == town.name)
    blocks: list[Block] = [
        f"{town.name} lies on the Sarn Waterway. The town received its charter in {town.charter}. "
        f"Market day is {town.market_day}.",
        rng.choice(_YARD[town.boatyard]).format(year=town.yard_closed),
        Heading("For visitors"),
        f"Boat people meet at {town.inn}. {town.fact} "
        + (f"Locks within the town: {locks}." if locks else "There is no lock within the town."),
        Heading("Census"),
        Table(("Year", "Inhabitants", "Households"), tuple(census)),
    ]
    return Document(path, f"The town of {town.name}", dt.date(2023, 5, 2), OFFICE, tuple(blocks))


# --- firms ---

_SEATS = (
    "{name}, {trade}, have their works at {town}.",
    "The {trade} {name} are based in {town}, on the quay.",
    "{name} ({trade}) run their business from {town}.",
    "Visitors find {name}, {trade}, in the old warehouse of {town}.",
)
_MOVES = (
    "Until 1987 the business sat in {before}.",
    "The move from {before} took nine boats and a week.",
    "Old letters still bear the address in {before}, where it began.",
)
_SIZES = (
    "{employees} people work there.",
    "The payroll lists {employees} names.",
    "It gives work to {employees} men and women.",
)


def _firm_pages(world: World) -> list[Document]:
    pages = []
    for place, firm in enumerate(world.firms):
        path = f"firms/{_slug(firm.name)}.{'html' if place % 2 else 'md'}"
        pages.append(_firm_page(firm, path, place))
    return pages


def _firm_page(firm: Firm, path: str, place: int) -> Document:
    rng = _rng(path)
    sales = []
    for year in range(2018, 2024):
        sales.append((year, rng.randrange(120, 990), rng.randrange(3, 60)))
    first = _SEATS[place % 4].format(name=firm.name, trade=firm.trade, town=firm.town)
    past = f"The house was founded in {firm.founded}."
    if firm.former_town:
        past += " " + _MOVES[place % 3].format(before=firm.former_town)
    blocks: list[Block] = [
        first,
        past,
        _SIZES[place % 3].format(employees=firm.employees) + f" At its head stands {firm.director}.",
        firm.fact,
        Heading("Freight on the waterway"),
        Table(("Year", "Tonnes carried", "Trips"), tuple(sales)),
        "All firms on the waterway owe the yearly mooring levy, whether they own boats or not.",
    ]
    return Document(path, firm.name, dt.date(2024, 2, 12), "Directory of firms", tuple(blocks))


# --- people ---

_TRAINED = (
    "{surname} learned the trade at {school}.",
    "{surname} holds a diploma of {school}.",
    "After school came three years at {school}.",
    "The apprenticeship years were spent at {school}.",
)
_KESTWOLD_SCHOOL = (
    "{surname} is a graduate of the Technical School in Kestwold.",
    "{surname} learned the trade at Kestwold Technical School.",
    "The technical school at Kestwold awarded a diploma to {surname}.",
    "Three years at Kestwold's Technical School came before the first post.",
)


def _people_pages(world: World) -> list[Document]:
    pages = []
    for place, person in enumerate(world.people):
        if person.role == "lock keeper":
            continue
        path = f"people/{_slug(person.name)}-{_slug(person.role)[:18].rstrip('-')}.{('md', 'txt', 'docx')[place % 3]}"
        pages.append(_person_page(person, path, place))
    keepers = [person for person in world.people if person.role == "lock keeper"]
    for first in range(0, len(keepers), 13):
        pages.append(_keepers_page(keepers[first : first + 13], first))
    return pages


def _person_page(person: Person, path: str, place: int) -> Document:
    surname = person.name.split(maxsplit=1)[1]
    sentences = [
        f"{person.name}, born at {person.birthplace} in {person.born}, is {person.role} on the Sarn Waterway.",
        _training(person, surname, place),
        person.fact,
        f"In spare hours {surname} {person.hobby}.",
    ]
    rng = _rng(path)
    asides = rng.sample(_ASIDES, 5)
    blocks: list[Block] = [
        " ".join([sentences[0], asides[0], sentences[1]]),
        " ".join([asides[1], sentences[2], asides[2]]),
        " ".join([asides[3], sentences[3], asides[4]]),
    ]
    return Document(path, f"{person.name}, {person.role}", dt.date(2024, 1, 15), "Staff magazine", tuple(blocks))


def _training(person: Person, surname: str, place: int) -> str:
    if person.training == TRADE_SCHOOL:
        return _KESTWOLD_SCHOOL[place % 4].format(surname=surname)
    return _TRAINED[place % 4].format(surname=surname, school=person.training)


_ASIDES = (
    "Colleagues describe a calm person with a loud laugh.",
    "The day begins with tea at the toll house.",
    "Work on the water, we were told, is mostly work on paper.",
    "A photograph shows a windy morning on the towpath.",
    "The interview was held in a cabin that smelled of tar.",
    "Asked about the future, there was only a shrug.",
    "Visitors are welcome, if they bring biscuits.",
    "A dog called Bosun sat in on the talk.",
    "The best month is October, when the tourists have gone.",
    "The worst day was the flood, and nobody wants to speak of it.",
    "Some say the Authority could not run a week without such people.",
    "The next issue brings a recipe.",
)


def _keepers_page(keepers: list[Person], first: int) -> Document:
    blocks: list[Block] = ["The staff magazine asked the keepers of the locks five short questions."]
    for place, person in enumerate(keepers):
        surname = person.name.split(maxsplit=1)[1]
        blocks.append(Heading(person.name))
        blocks.append(
            f"Born in {person.born} at {person.birthplace}. {_training(person, surname, place)} "
            f"{surname} {person.hobby} when the lock is closed. "
            f"{_ASIDES[(place + first) % len(_ASIDES)]}"
        )
    part = 1 + first // 13
    return Document(
        f"people/keepers-{part}.docx",
        f"The keepers, part {part}",
        dt.date(2023, 9, 20),
        "Staff magazine",
        tuple(blocks),
    )


# --- boats ---

# Name, kind, and what only the boat's page says.
BOAT_FACTS = (
    ("Heron", "Cargo boats", "A grain auction was once held on her deck during a snowstorm, and the mayor bought 300 sacks by mistake."),
    ("Heron", "Passenger boats", "School classes ride on her to the reed museum; a stuffed otter named Gladys sits in the bow."),
    ("Blue Kettle", "Cargo boats", "She carried the bells of Brethwick to the foundry and came back with cannon balls."),
    ("Blue Kettle", "Passenger boats", "Weddings are held on board; the rule is that the groom must steer."),
    ("Constance", "Cargo boats", "She sank at her mooring under a load of wet wool in 1957 and was raised with 4,000 corks."),
    ("Constance", "Work boats", "Her crane came from a bankrupt theatre."),
    ("Larkspur", "Passenger boats", "She served as a floating dentist's surgery until 1983."),
    ("Larkspur", "Work boats", "She lays buoys, each numbered in the hand of Emeric Vail."),
    ("Perpetua", "Cargo boats", "Her tiller vanished in 1988 and was missing for 26 years."),
    ("Maltster", "Cargo boats", "Hops were dried in her engine room, which the excise man took for arson."),
    ("Slow Thunder", "Cargo boats", "She needed eleven days for the run to Fenmoor in 1963, the slowest ever entered in the log."),
    ("Tidewaiter", "Cargo boats", "Her cabin ceiling is papered with lottery tickets, none of them a winner."),
    ("Juniper Sand", "Cargo boats", "She was built for a circus and has a door high enough for a giraffe."),
    ("Sarn Belle", "Passenger boats", "Her steam whistle plays two notes, a fourth apart, tuned by the organist of Kestwold."),
    ("Evening Post", "Passenger boats", "She delivered mail until 2003; her cabin still has 144 pigeonholes."),
    ("Dragonfly Mary", "Passenger boats", "A regatta was won by her in 1928 because all others ran aground."),
    ("Mudlark", "Work boats", "Her crew found a Roman sandal in the mud of Widow's Lock and wore it on feast days."),
    ("Ice Plough", "Work boats", "Twenty men rocked her from side to side to break the ice, led by a fiddler."),
    ("Fire Float", "Work boats", "Her pump saved the grain exchange of Marlbridge from burning in 1949."),
    ("Umber", "Cargo boats", "She is the only boat whose hull was riveted by women, in the yard strike of 1917."),
)  # fmt: skip


def find_boat(world: World, name: str, kind: str) -> Boat:
    """Return a boat of a kind."""
    return next(boat for boat in world.boats if boat.name == name and boat.kind == kind)


def _boat_pages(world: World) -> list[Document]:
    pages = []
    suffixes = ("md", "txt", "html")
    for place, (name, kind, fact) in enumerate(BOAT_FACTS):
        boat = find_boat(world, name, kind)
        path = f"boats/{_slug(name)}-{boat.registration.lower()}.{suffixes[place % 3]}"
        use = {"Cargo boats": "freight", "Passenger boats": "passengers", "Work boats": "works on the waterway"}[kind]
        rng = _rng(path)
        blocks: list[Block] = [
            f"The {name} ({boat.registration}) is used for {use}. She left the slip of {boat.yard} in {boat.built}.",
            f"{rng.choice(_BOAT_ASIDES)} {fact} {rng.choice(_BOAT_ASIDES)}",
            f"Her hull measures {boat.length:.1f} m. {rng.choice(_BOAT_ASIDES)}",
        ]
        pages.append(
            Document(path, f"{name} ({boat.registration})", dt.date(2023, 8, 14), "Museum, boat files", tuple(blocks))
        )
    return pages


_BOAT_ASIDES = (
    "Her rudder was renewed twice.",
    "The first skipper was a woman from the Fenmoor Cut.",
    "A watercolour of her hangs in the toll house.",
    "She has been painted green, black and green again.",
    "In low water she touches the ground above Candle Lock.",
    "Her papers are complete but for one lost page.",
    "The cabin stove came from another boat.",
    "She was frozen in for five weeks during a long winter.",
)


def _registers(world: World) -> list[Document]:
    columns = ("Registration", "Name", "Built", "Yard", "Length (m)", "Engine", "Home mooring", "Owner")
    documents = []
    for year in (2023, 2024):
        blocks: list[Block] = []
        for kind in KINDS:
            rows = []
            for boat in world.boats:
                if boat.kind == kind:
                    owner = boat.owner if year == 2024 else boat.owner_before
                    row = (
                        boat.registration,
                        boat.name,
                        boat.built,
                        boat.yard,
                        boat.length,
                        boat.engine,
                        boat.home,
                        owner,
                    )
                    rows.append(row)
            blocks += [Heading(kind), Table(columns, tuple(rows))]
        date = dt.date(year, 4, 1)
        documents.append(
            Document(f"registers/boats-{year}.xlsx", f"Register of boats, 1 April {year}", date, OFFICE, tuple(blocks))
        )
    moorings = tuple(
        (each.number, each.town, each.boat, each.length or "", each.fee or "", each.paid) for each in world.moorings
    )
    table = Table(("Mooring", "Town", "Boat", "Length (m)", "Yearly fee", "Paid"), moorings)
    documents.append(Document("registers/moorings-2024.csv", "Moorings 2024", dt.date(2024, 12, 31), OFFICE, (table,)))
    exhibits = tuple(
        (each.number, each.name, each.found_at, each.donor, each.year, each.room) for each in world.exhibits
    )
    table = Table(("Number", "Object", "Found at", "Given by", "Year of gift", "Room"), exhibits)
    documents.append(
        Document("museum/catalogue.csv", "Catalogue of the museum", dt.date(2024, 6, 30), OFFICE, (table,))
    )
    payments = tuple((each.date.isoformat(), each.firm, each.amount, each.remark) for each in world.payments)
    documents.append(
        Document(
            "registers/mooring-levy-2024.xlsx",
            "Mooring levy 2024: payments received by 31 December 2024",
            dt.date(2024, 12, 31),
            OFFICE,
            (
                Heading("Payments"),
                Table(("Date", "Firm", "Crowns", "Remark"), payments),
                Heading("Rates"),
                Table(("Employees up to", "Crowns per employee"), LEVY_RATES),
            ),
        )
    )
    return documents


# --- monthly reports ---

_WEATHER = (
    "The month was wet, and the towpath was closed at two places.",
    "Fog kept many boats at their moorings in the first week.",
    "A dry spell lowered the upper pounds by a hand's breadth.",
    "Wind from the east brought branches down.",
    "The weather was fair and the anglers were many.",
    "Frost came early in the mornings and left by noon.",
)
_EVENTS = (
    "A wedding party blocked the tail of a lock for two hours.",
    "The keepers were given new boots.",
    "An anglers' club counted 31 species of fish.",
    "Two skippers were fined for wash.",
    "A school class painted the stop planks.",
    "The weed cutter was under repair for six days.",
    "A loaded boat ran on a shoal and was lightered the same evening.",
    "A swan delayed the mail boat.",
    "Thieves took a brass bell, which was found in a hedge.",
    "A new bench was put up for a late lengthsman.",
)
# What only one monthly report says.
_MONTH_FACTS = {
    (
        2024,
        2,
    ): "The flood of 9 February left mud in the kitchen of the keeper's cottage at Tanner's Lock, while the cottage "
    "of Bishop's Lock stayed dry behind its new wall.",
    (
        2024,
        5,
    ): "The swing bridge at Inglesay was repainted in Tiller No. 4 by Pell & Daughters; it was closed for nine days.",
    (
        2023,
        8,
    ): "The stray balloon of a weather station came down at Star Lock and was returned for a reward of two cheeses.",
    (2024, 8): "A stolen piano was found afloat above Plumb Lock; it still held its tune.",
    (2023, 10): "Cuckoo Lock at Callowmere was shut for six days while its new leaves of steel were hung.",
    (
        2023,
        11,
    ): "The legger's statue was delivered to Dunsilver without its left foot, which arrived a week later by mail.",
}


def _traffic_reports(world: World) -> list[Document]:
    reports = []
    for year in (2023, 2024):
        for month in range(1, 13):
            reports.append(_traffic_report(world, year, month))
    return reports


def _traffic_report(world: World, year: int, month: int) -> Document:
    path = f"traffic/{year}/report-{year}-{month:02}.docx"
    rng = _rng(path)
    rows = []
    for row in world.traffic:
        if (row.year, row.month) == (year, month):
            printed = MISPRINT[3] if (year, month, row.lock) == MISPRINT[:3] else row.tonnes
            rows.append((row.lock, row.up, row.down, printed))
    blocks: list[Block] = [
        f"Boats and freight counted at the eight counting locks in {MONTHS[month - 1]} {year}.",
        Table(("Lock", "Boats up", "Boats down", "Tonnes"), tuple(rows)),
        Heading("Remarks"),
        " ".join([rng.choice(_WEATHER), *rng.sample(_EVENTS, 2)]),
    ]
    if (year, month) in _MONTH_FACTS:
        blocks.append(_MONTH_FACTS[year, month])
    if (year, month) == (MISPRINT[0], MISPRINT[1] + 1):
        right = next(row for row in world.traffic if (row.year, row.month, row.lock) == MISPRINT[:3])
        blocks.append(
            f"Correction to last month's report: the tonnes of {right.lock} were misprinted; "
            f"the right figure is {right.tonnes}, not {MISPRINT[3]}."
        )
    date = dt.date(year + month // 12, month % 12 + 1, 4)
    return Document(path, f"Traffic report, {MONTHS[month - 1]} {year}", date, "Toll office", tuple(blocks))


# --- accounts ---


def _accounts(world: World) -> list[Document]:
    documents = []
    for year in (2023, 2024):
        for quarter in range(1, 5):
            blocks: list[Block] = []
            for sheet in ("Income", "Expenses", "Capital works"):
                rows = []
                for item in world.items:
                    if (item.year, item.quarter, item.sheet) == (year, quarter, sheet):
                        rows.append((item.name, item.amount))
                blocks += [Heading(sheet), Table(("Item", "Crowns"), tuple(rows))]
            path = f"accounts/{year}-q{quarter}.xlsx"
            rng = _rng(path)
            staff = tuple((town.name, rng.randrange(2, 15), rng.randrange(0, 4)) for town in world.towns)
            blocks += [Heading("Staff"), Table(("Town", "Employed", "Apprentices"), staff)]
            date = dt.date(year + quarter // 4, quarter * 3 % 12 + 1, 20)
            title = f"Accounts, quarter {quarter} of {year}"
            documents.append(Document(path, title, date, "Yolande Farthing", tuple(blocks)))
    return documents


# --- minutes ---

_OPENERS = (
    "The chair opened the meeting at half past nine.",
    "The meeting began at ten o'clock in the weigh house.",
    "The chair welcomed the members and two guests.",
)
_DEBATES = (
    "Some members feared the cost. Others recalled that the same had been tried before.",
    "There was a long talk about the wording, which was left as it was.",
    "The secretary read a letter of the boat people in favour.",
    "The chief engineer answered questions with the help of a drawing.",
    "One member asked for a delay, but nobody seconded it.",
    "The auditor had no objection.",
)
# What only the minutes of one meeting say.
_MEETING_FACTS = {
    dt.date(2023, 1, 17): "Benedict Rowe was appointed chair of the Safety Committee, from 1 February 2023.",
    dt.date(
        2023, 9, 5
    ): "The new gates of Cuckoo Lock at Callowmere, of steel in place of oak, will be hung in October 2023.",
    dt.date(
        2024, 3, 5
    ): "Reported on the flood: Sluice Lock at Fenmoor lost its coal heap, and its keeper had to sleep in the "
    "loft because the rooms below were under water.",
    dt.date(
        2024, 6, 4
    ): "Benedict Rowe laid down the chair of the Safety Committee. Cecily Thornback takes it for the summer.",
    dt.date(2024, 9, 3): "As chair of the Safety Committee the Board chose Zora Wintle, with immediate effect.",
    dt.date(
        2024, 10, 22
    ): "The hanging of steel gates at Walnut Lock at Garth Hollin, planned for this autumn, was put off to "
    "2026; the oak ones must serve until then.",
}


def _minutes(world: World) -> list[Document]:
    documents = []
    for place, meeting in enumerate(world.meetings):
        suffix = "docx" if place % 2 else "pdf"
        path = f"board/minutes-{meeting.date.isoformat()}.{suffix}"
        documents.append(_meeting_minutes(meeting, path, meeting.date, draft=False))
        if meeting.date == dt.date(2024, 3, 5):
            # A draft with other votes: the approved minutes replace it.
            first = meeting.motions[0]
            wrong = replace(first, votes_for=first.votes_for + 1, votes_against=first.votes_against - 1)
            drafted = replace(meeting, motions=(wrong, *meeting.motions[1:]))
            path = f"board/draft-minutes-{meeting.date.isoformat()}.docx"
            documents.append(_meeting_minutes(drafted, path, meeting.date, draft=True))
    return documents


def _meeting_minutes(meeting: Meeting, path: str, date: dt.date, *, draft: bool) -> Document:
    rng = _rng(date.isoformat())
    day = f"{date.day} {MONTHS[date.month - 1]} {date.year}"
    blocks: list[Block] = []
    if draft:
        blocks.append("DRAFT, not approved. Members are asked to send corrections to the secretary.")
    apologies = ", ".join(meeting.apologies) or "none"
    blocks += [
        Heading("Attendance"),
        f"Present: {', '.join(meeting.present)}.",
        f"Apologies: {apologies}.",
        rng.choice(_OPENERS) + " The minutes of the last meeting were approved.",
    ]
    rows = []
    for number, motion in enumerate(meeting.motions, start=1):
        blocks += [
            Heading(f"Item {number}"),
            f"It was moved {motion.text}. {' '.join(rng.sample(_DEBATES, 2))}",
        ]
        outcome = "carried" if motion.carried else "lost"
        text = f"{motion.text[0].upper()}{motion.text[1:]}"
        rows.append((number, text, motion.votes_for, motion.votes_against, motion.abstained, outcome))
    columns = ("Item", "Motion", "For", "Against", "Abstained", "Outcome")
    blocks += [Heading("Votes"), Table(columns, tuple(rows)), Heading("Reports and appointments")]
    blocks.append(_MEETING_FACTS.get(date, "There were no appointments."))
    blocks.append("The chair closed the meeting. The next one will be called by letter.")
    title = f"{'Draft minutes' if draft else 'Minutes'} of the Board, {day}"
    return Document(path, title, date, "Sabina Crewe", tuple(blocks))


# --- inspections ---

# What is said of one part, and of several.
_RATED = {
    "good": (("shows no damage", "show no damage"), ("is sound", "are sound"), ("needs no work", "need no work")),
    "fair": (
        ("has small cracks", "have small cracks"),
        ("shows the usual wear", "show the usual wear"),
        ("will need work within five years", "will need work within five years"),
    ),
    "poor": (
        ("must be repaired before winter", "must be repaired before winter"),
        ("is worn through", "are worn through"),
        ("leaks badly", "leak badly"),
    ),
}


def _inspections(world: World) -> list[Document]:
    documents = []
    for inspection in world.inspections:
        path = f"inspections/2024-{_slug(inspection.lock)}.pdf"
        documents.append(_inspection_report(inspection, path))
    return documents


def _inspection_report(inspection: Inspection, path: str) -> Document:
    rng = _rng(path)
    rows = tuple((part, rating) for part, rating in inspection.ratings)
    sentences = []
    for part, rating in inspection.ratings:
        one, several = rng.choice(_RATED[rating])
        sentences.append(f"The {part.lower()} {several if part.endswith('s') else one}.")
    blocks: list[Block] = [
        f"Inspector: {inspection.inspector}. The lock was drained for four hours. Parts are rated good, fair or poor.",
        Heading("Ratings"),
        Table(("Part", "Condition"), rows),
        Heading("Findings"),
        " ".join(sentences),
        f"The levels were {rng.randrange(3, 40)} mm above the mark. Water temperature: {rng.randrange(4, 19)} degrees.",
    ]
    if inspection.lock in REPLACED_GATES:
        blocks.append("The gates were compared with the drawings.")
    title = f"Inspection of {inspection.lock}"
    return Document(path, title, inspection.date, inspection.inspector, tuple(blocks))


# --- bye-laws and notices ---

SPEED_LIMITS = {2019: 6, 2022: 5, 2024: 4}
PROPOSED_LIMIT = 3
MUSEUM_HOURS = {2022: "half past two", 2023: "three o'clock", 2024: "a quarter to four"}
_CLAUSES = (
    ("Passage of locks", "Boats pass locks in the order of their arrival. Mail boats and fire boats go first."),
    (
        "Lights",
        "From dusk a white light is shown at the stem, and a green one when a boat is moored outside the towpath.",
    ),
    ("Wash", "No boat may raise a wash that breaks on the bank."),
    ("Horses", "Horse boats keep to the towpath side. Ropes are lowered for boats that overtake."),
    ("Dogs and poultry", "Dogs are kept on deck. Cockerels are not carried between dusk and dawn."),
    ("Anglers", "Lines are drawn in when a boat is within forty paces."),
    ("Ice", "Nobody breaks ice without leave of the keeper."),
    ("Cargo", "Lime is carried dry and under cover. Powder is not carried at all."),
    ("Sunk boats", "The owner of a sunk boat marks it at once and raises it within ten days."),
)


def _rules() -> list[Document]:
    documents = []
    for year, limit in SPEED_LIMITS.items():
        if year == 2024:
            continue
        suffix = "pdf" if year == 2019 else "docx"
        blocks: list[Block] = [f"These bye-laws are in force from 1 May {year} and replace all earlier ones."]
        clauses = list(_CLAUSES)
        clauses.insert(3, ("Speed", _speed_clause(limit)))
        for number, (name, text) in enumerate(clauses, start=1):
            blocks += [Heading(f"{number}. {name}"), text]
        fines = tuple((name, 20 + 5 * number + (year - 2019)) for number, (name, _) in enumerate(clauses))
        blocks += [Heading("Fines"), Table(("Clause", "Crowns"), fines)]
        date = dt.date(year, 4, 10)
        documents.append(
            Document(f"rules/bye-laws-{year}.{suffix}", f"Bye-laws {year}", date, AUTHORITY, tuple(blocks))
        )
    amendment: tuple[Block, ...] = (
        "The Board has amended the bye-laws of 2022. The amendment is in force from 1 July 2024.",
        f"In clause 4, second sentence, the figure {SPEED_LIMITS[2022]} is replaced by {SPEED_LIMITS[2024]}.",
        "Clause 6 gets a second sentence: parrots count as poultry.",
    )
    documents.append(
        Document("rules/amendment-2024.md", "Amendment of the bye-laws", dt.date(2024, 6, 5), AUTHORITY, amendment)
    )
    proposal: tuple[Block, ...] = (
        "Proposal of three members for the year 2025. It was not put to the vote and has no force.",
        f"Boats of more than twenty metres should go no faster than {PROPOSED_LIMIT} km/h on the Hollin Arm.",
    )
    documents.append(Document("rules/proposal-2025.md", "Proposal: speed", dt.date(2024, 11, 18), AUTHORITY, proposal))
    for year, hour in MUSEUM_HOURS.items():
        notice: tuple[Block, ...] = (
            f"From November {year} until further notice the waterway museum closes at {hour} on winter weekdays. "
            "It opens at ten.",
            "Tickets are sold at the Toll Room. Dogs wait outside.",
            Table(("Visitor", "Crowns"), (("Adult", year - 2016), ("Child", 2), ("Boat people", 0))),
        )
        date = dt.date(year, 10, 20)
        documents.append(Document(f"museum/notice-{year}.html", f"Winter hours {year}", date, "Perdita Lunn", notice))
    return documents


def _speed_clause(limit: int) -> str:
    return (
        "Boats go no faster than 8 km/h on the main line. "
        f"On the Hollin Arm the limit for boats of more than twenty metres is {limit} km/h."
    )


# --- briefings ---

BRIEFING_TOPICS = (
    "Ropes and knots", "Slips on wet stone", "Life jackets", "Lifting beams", "Cold water", "Working at night",
    "Fire on board", "Gas and stoves", "Horses on the towpath", "Reporting near misses",
)  # fmt: skip
BRIEFINGS = ((2023, 1), (2023, 4), (2023, 7), (2023, 10), (2024, 1), (2024, 4), (2024, 7), (2024, 10))


def briefing_topics(year: int, month: int) -> list[str]:
    """Return the topics of a briefing, one a slide after the cover."""
    return _rng(f"briefing {year} {month}").sample(BRIEFING_TOPICS, 6)


def _briefings() -> list[Document]:
    documents = []
    for year, month in BRIEFINGS:
        rng = _rng(f"briefing texts {year} {month}")
        blocks: list[Block] = []
        for topic in briefing_topics(year, month):
            blocks += [Heading(topic), *rng.sample(_BRIEFING_LINES, 2)]
            if topic == "Reporting near misses":
                counts = tuple((place, rng.randrange(0, 9)) for place in ("Locks", "Towpath", "Yards"))
                blocks.append(Table(("Place", "Near misses"), counts))
            blocks.append(Notes(f"Ask who has seen this happen. {rng.choice(_BRIEFING_NOTES)}"))
        title = f"Safety briefing, {MONTHS[month - 1]} {year}"
        date = dt.date(year, month, 2)
        documents.append(
            Document(f"safety/briefing-{year}-{month:02}.pptx", title, date, "Safety Committee", tuple(blocks))
        )
    return documents


_BRIEFING_LINES = (
    "Look before you step.",
    "Two people for every beam.",
    "Check the equipment every Monday.",
    "Write it down the same day.",
    "Keep the whistle at the collar.",
    "Never turn your back to the water.",
    "Replace what is frayed.",
)
_BRIEFING_NOTES = (
    "Tell the story of the red bucket.",
    "Show the torn glove.",
    "Pass the knot board around.",
    "Mention the accident at the weigh house without names.",
)


# --- mails ---

# Sender, receiver, date, subject, paragraphs; replies quote what they answer.
_MAILS: tuple[tuple[str, str, dt.date, str, tuple[Block, ...]], ...] = (
    ("Ivo Strangeways", "Zillah Northover", dt.date(2024, 3, 18), "Rope Lock", (
        "The leaves are hung. Steel it is, after two hundred years of oak, and the keeper says the lock sounds like a drum now.",
        "Send the old beams to the museum.")),
    ("Zillah Northover", "Ivo Strangeways", dt.date(2024, 3, 19), "Re: Rope Lock", (
        "Well done. The beams go to Perdita on Thursday.",
        "> The leaves are hung. Steel it is, after two hundred years of oak, and the keeper says the lock sounds like a drum now.")),
    ("Zillah Northover", "Agatha Pym-Holloway", dt.date(2024, 11, 21), "Chapel Lock at Pellbury", (
        "The oak gates came out on Monday, the steel ones went in on Wednesday. The chapel choir sang, which was not in the budget.",)),
    ("Hester Vane", "Perdita Lunn", dt.date(2023, 6, 12), "Otter", (
        "The stuffed otter has moths again. Could the museum's freezer take her for a week?",)),
    ("Perdita Lunn", "Hester Vane", dt.date(2023, 6, 13), "Re: Otter", (
        "Bring Gladys on Tuesday. The freezer is full of fishing nets until then.",
        "> The stuffed otter has moths again. Could the museum's freezer take her for a week?")),
    ("Ida Cromarsh", "Beatrix Swale", dt.date(2024, 2, 11), "Water in the house", (
        "You asked how we got through it. At the cottage of Widow's Lock the water came up through the floor boards and stood a foot "
        "deep in the parlour.", "Next door the chandler's shop stayed dry.")),
    ("Beatrix Swale", "All keepers", dt.date(2024, 2, 14), "Claims after the flood", (
        "Please send claims for lost stores by the end of the month.",
        Table(("Keeper of", "Claim (crowns)", "For"), (
            ("Measure Lock at Marlbridge", 310, "flooded cottage, two mattresses"),
            ("Grain Lock at Marlbridge", 45, "rope washed away, house dry"),
            ("Reed Lock at Fenmoor", 80, "skiff, house dry"))))),
    ("Conrad Lanyard", "Beatrix Swale", dt.date(2024, 7, 2), "The levy", (
        "The bank sent our money back because of a missing digit. It is on its way again. I apologise for the trouble.",)),
    ("Tamar Vosper", "Beatrix Swale", dt.date(2024, 9, 30), "Reminder", (
        "I have your reminder. Our reed is wet and unsold, and the levy will have to wait until spring.",)),
    ("Lucian Frome", "Maren Tollick", dt.date(2023, 4, 3), "Levels", (
        "The float at the Kestwold reservoir stuck at 212 on Saturday. A coot had nested on it. I moved neither.",)),
    ("Maren Tollick", "Lucian Frome", dt.date(2023, 4, 4), "Re: Levels", (
        "Leave the coot. We take the figure of Star Lock until she has hatched.",
        "> The float at the Kestwold reservoir stuck at 212 on Saturday. A coot had nested on it. I moved neither.")),
    ("Cosmo Hartnoll", "Ivo Strangeways", dt.date(2024, 5, 27), "What we raised", (
        "Raised from the Marl Basin this week: a bathtub, nine bicycles and the safe of the old ferry company, empty but for a love letter.",)),
    ("Jonas Wick", "Ivo Strangeways", dt.date(2023, 12, 1), "Tunnel lamps", (
        "Lamp 17 in the tunnel goes out whenever the Evening Post passes. I suspect her dynamo.",)),
    ("Ivo Strangeways", "Jonas Wick", dt.date(2023, 12, 2), "Re: Tunnel lamps", (
        "It is not the dynamo. The skipper throws his cap at it for luck.",
        "> Lamp 17 in the tunnel goes out whenever the Evening Post passes. I suspect her dynamo.")),
    ("Sabina Crewe", "Members of the Board", dt.date(2024, 4, 2), "Minutes of March", (
        "The draft had a wrong count in the first vote. The approved minutes are in the folder; please destroy the draft.",)),
    ("Winifred Stagg", "Sabina Crewe", dt.date(2023, 10, 9), "The bell", (
        "The ferry bell was stolen again. This time they left a cake in its place, lemon, and quite good.",)),
    ("Honor Blackadder", "Cosmo Hartnoll", dt.date(2024, 8, 19), "Weed", (
        "The weed above Reed Lock grows a hand a day. I need the Weedeater and two men until the regatta.",)),
    ("Oriel Tansley", "Sabina Crewe", dt.date(2024, 6, 24), "Night of the regatta", (
        "Eleven people fell in, one of them twice. I took four canoes, two hats and a trombone into custody.",)),
    ("Linnet Ashdown", "Ramsey Merrow", dt.date(2024, 1, 29), "Your order", (
        "The new gravel boat will have a flat bow, as you wish, and the keel will be laid when the frost leaves the slip.",)),
    ("Noor Quillet", "Lucian Frome", dt.date(2024, 10, 7), "Gauge for Star Lock", (
        "The new float gauge is ready. It rings a small bell when the level falls below the mark, as you asked.",)),
    ("Barnabas Crake", "Ambrose Tiddy", dt.date(2023, 5, 15), "Treacle", (
        "The mare refuses the footbridge since it was painted white. Could you spare some brown?",)),
    ("Ambrose Tiddy", "Barnabas Crake", dt.date(2023, 5, 16), "Re: Treacle", (
        "I have brown, and a bag of straw for the boards. Saturday at dawn.",
        "> The mare refuses the footbridge since it was painted white. Could you spare some brown?")),
    ("Piran Goss", "Agatha Pym-Holloway", dt.date(2024, 9, 12), "Boat school", (
        "We have 23 pupils this year, nine of them from the Fenmoor Cut. The piano stands on the landing stage and needs a roof.",)),
    ("Yolande Farthing", "Agatha Pym-Holloway", dt.date(2024, 12, 9), "Dredging of 2026", (
        "Dredging of the Fenmoor Cut is planned for 2026. The firm will be chosen later, and so will the month.",)),
)  # fmt: skip


def _mails() -> list[Document]:
    documents = []
    for place, (sender, receiver, date, subject, blocks) in enumerate(_MAILS, start=1):
        fields = (("From", _address(sender)), ("To", _address(receiver)))
        path = f"mail/{date.isoformat()}-{place:02}.eml"
        documents.append(Document(path, subject, date, sender, blocks, fields))
    return documents


def _address(name: str) -> str:
    return f'"{name}" <{_slug(name)}@sarn-waterway.example>'
