"""The long documents of the archive: a history, a handbook, annual reports, a glossary, an index and contents."""

from __future__ import annotations

import datetime as dt
from random import Random

from waterway_files import Block, Document, Heading, Table
from waterway_world import AUTHORITY, SEED, World

# Chapters of the history, with what only they say.
CHAPTERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("The river before the locks", (
        "The oldest map, drawn by the monk Anselm of Reedholm, shows nineteen fords and one toll chain.",)),
    ("The first company", (
        "The founding shares were printed on sailcloth, because the printer owed the company money.",
        "The first treasurer, Obadiah Crumb, kept the takings in a hollow oak.")),
    ("Digging the main line", (
        "The diggers were paid in brass tokens that only the company's own bakehouse took.",)),
    ("The tunnel", (
        "The two headings met a hand's breadth apart, and the foreman, Elijah Spurrow, drank the wager on the spot.",)),
    ("The Hollin Arm", (
        "The arm was dug against the advice of the geologist, who had found a spring under its bed.",)),
    ("The years of grain", (
        "In one autumn 1,140 boats of grain passed Marlbridge, and the exchange ran out of ink.",)),
    ("The salt quarrel", (
        "The boat people blocked Eskerly for seventeen days with a wall of salt sacks.",
        "The quarrel ended when Temperance Rook, a skipper's wife, ate the writ in court.")),
    ("Horses and steam", (
        "The first steam barge, the Hasty, needed nine hours for a mile and burned her own deck.",)),
    ("The railway", (
        "The railway bought every second barge and sank them in rows, as a breakwater.",)),
    ("War and ice", (
        "In the winter of the long ice, bread was drawn to Fenmoor by a team of Saint Bernards.",)),
    ("The quiet decades", (
        "For eleven years the only regular traffic was a boat of library books.",)),
    ("The Authority", (
        "The Authority was founded in the back room of the Swing Bridge Inn, by a vote of five to four.",)),
    ("Visitors", (
        "The first boat for visitors charged by weight, which ended after a quarrel with a bishop.",)),
)  # fmt: skip
_SENTENCES = (
    "In {year} the committee heard {number} complaints about the bank at {town}.",
    "A letter of {year} mentions {number} cartloads of clay for the bed near {town}.",
    "{surname}, a contractor, asked for more money in {year} and was given half.",
    "The ledgers of {year} list {number} horses, of which a third were lame.",
    "Near {town} the digging stopped for {number} weeks because of the harvest.",
    "People at {town} remembered the {surname} family for their stubbornness.",
    "Nobody knows why the mile post at {town} bears the number {number}.",
    "The price of oak rose in {year}, and the price of rope with it.",
    "A flood in {year} carried {number} yards of the towpath away.",
    "Travellers praised the tea at {town} and said nothing of the beds.",
    "An engineer named {surname} drew the culverts, and signed them with a snail.",
    "The minutes of {year} are stained with what may be gravy.",
    "It took {number} men to move the stone that now lies before the chapel of {town}.",
    "Some say that {surname} never saw the water; his letters prove that he did.",
    "In {year} the lengthsmen were given lanterns, and in the next year oil for them.",
    "The boats of that time carried {number} sacks each, if the water allowed.",
    "At {town} the boat people were buried with their caps on, until {year}.",
    "{surname} left the company in {year} after a quarrel about candles.",
    "The archives hold {number} receipts for beer, and one for soap.",
    "A drought in {year} left the pound at {town} dry, and the fish were sold by the bucket.",
)
_SURNAMES = (
    "Thackrill", "Ormesher", "Peverel", "Ludd", "Garside", "Wooller", "Twelvetrees", "Aspinwall", "Crowther", "Noakes",
    "Fosdyke", "Gathercole", "Hebblethwaite", "Jowett", "Kellow", "Mawson", "Nettlefold", "Purslow", "Quaife", "Rigby",
)  # fmt: skip


def long_documents(world: World) -> list[Document]:
    """Return the long documents."""
    return [
        _history(world),
        _handbook(world),
        *(_annual_report(world, year) for year in (2022, 2023, 2024)),
        _glossary(),
        _index(world),
        _contents(),
        _bridges(world),
    ]


def _paragraph(rng: Random, world: World, sentences: int) -> str:
    chosen = rng.sample(_SENTENCES, sentences)
    texts = []
    for sentence in chosen:
        text = sentence.format(
            year=rng.randrange(1786, 1950),
            number=rng.randrange(12, 480),
            town=rng.choice(world.towns).name,
            surname=rng.choice(_SURNAMES),
        )
        texts.append(text)
    return " ".join(texts)


def _history(world: World) -> Document:
    rng = Random(f"{SEED} history")
    blocks: list[Block] = ["Written for the museum. Numbers in the margin of the printed book are left out here."]
    for number, (name, facts) in enumerate(CHAPTERS, start=1):
        blocks.append(Heading(f"Chapter {number}. {name}"))
        paragraphs = [_paragraph(rng, world, 9) for _ in range(7)]
        for fact in facts:
            place = rng.randrange(1, len(paragraphs))
            paragraphs[place] += f" {fact} {_paragraph(rng, world, 2)}"
        blocks += paragraphs
    return Document(
        "books/history.md", "A history of the Sarn Waterway", dt.date(2019, 3, 1), "Honoria Tidewell", tuple(blocks)
    )


# Sections of the handbook: name, rules, and what only this section says.
SECTIONS: tuple[tuple[str, str], ...] = (
    ("Duties of a keeper", "A keeper who leaves the lock for more than an hour hangs a red broom at the gate."),
    ("The log", "Entries are made in pencil, since ink freezes; a line in green marks a death on the water."),
    ("Filling and emptying", "The paddles are drawn in three stages with a pause of forty heartbeats between them."),
    ("Visitors at the lock", "A visitor may wind a paddle after signing for his own fingers."),
    ("Tolls and tickets", "Boats with a midwife on board pass free of toll."),
    ("Animals", "Geese are counted as cargo, swans as weather."),
    (
        "Winter working",
        "When ice bears a keeper's hammer thrown from the beam, the lock is closed and a straw wreath is hung out.",
    ),
    ("Drought", "In a drought boats are locked through in pairs, the heavier one first."),
    ("Flood", "At the second white stone the keeper opens the weir without asking anyone."),
    (
        "Accidents",
        "The Safety Committee is told by telephone, its chair Benedict Rowe by name; a written report follows within two days.",
    ),
    ("Stores", "Each hut holds two spare windlasses, a pound of tallow and a book of psalms."),
    ("The cottage", "Keepers may keep one pig, but not name it after a member of the Board."),
    ("Leave and pay", "A keeper has 23 days of leave, of which one is for the boat market."),
    ("Radio and telephone", "The call sign of a lock is its number and the first bird seen that morning."),
)
_RULES = (
    "Tools are put back in the place where they were found.",
    "A keeper answers questions politely and briefly.",
    "The landing stage is swept before the first boat.",
    "Loose bricks are reported to the clerk of works.",
    "No boat is hurried, and none is kept waiting without a reason.",
    "The whistle is blown once for up and twice for down.",
    "Nobody stands between the beam and the wall.",
    "Lamps are trimmed on Saturdays.",
    "Keys are not lent, not even to relatives.",
    "When in doubt, the water decides.",
    "Paint is ordered in spring, and only in the colours of the list.",
    "Boats with families go before boats with gravel.",
    "A drowned windlass is paid for by the one who dropped it.",
    "The barometer is read aloud if someone else is there to hear it.",
    "Ropes are dried before they are coiled.",
    "The forms for this are kept in the second drawer.",
)


def _handbook(world: World) -> Document:
    rng = Random(f"{SEED} handbook")
    blocks: list[Block] = [
        "For keepers and their deputies. In force since March 2023. The bye-laws go before this handbook."
    ]
    for number, (name, fact) in enumerate(SECTIONS, start=1):
        blocks.append(Heading(f"{number}. {name}"))
        for part in range(1, 4):
            blocks.append(Heading(f"{number}.{part} {('In general', 'In detail', 'Records')[part - 1]}", 3))
            rules = rng.sample(_RULES, 9)
            if part == 2:
                rules.insert(4, fact)
            blocks.append(" ".join(rules))
        if number % 4 == 0:
            rows = tuple((town.name, rng.randrange(1, 9), rng.randrange(1, 30)) for town in world.towns)
            blocks.append(Table(("Town", "Windlasses", "Lamps"), rows))
    return Document("books/handbook.docx", "Handbook for keepers", dt.date(2023, 3, 1), AUTHORITY, tuple(blocks))


# What only one annual report says.
_REPORT_FACTS = {
    (2022, "Museum"): "The museum bought a bargeman's glass eye, which was the dearest object of the year.",
    (2023, "Towpath"): "A mammoth tooth came to light during towpath works between Star Lock and Quarry Lock.",
    (2023, "Museum"): "Most visitors on a single day, 1,306, came when the lock choir sang at midnight.",
    (
        2024,
        "Floods and ice",
    ): "After the water of 9 February had gone, the rooms of the cottage of Salt Lock at Eskerly had to be "
    "replastered up to the window sills. The cottages of Lantern Lock and Adze Lock at Harrowdene, on higher ground, stayed dry.",
    (
        2024,
        "Fish and birds",
    ): "A pair of spoonbills nested at the reservoir and was guarded by the angling club in shifts.",
    (
        2024,
        "Towpath",
    ): "Between Harrowdene and Inglesay the towpath was surfaced with crushed walnut shells as a trial.",
}
_REPORT_PARTS = ("The year in short", "Towpath", "Museum", "Floods and ice", "Fish and birds", "Boat school", "Outlook")
_REPORT_SENTENCES = (
    "Near {town} the bank was made good over {number} metres.",
    "The lengthsmen of {town} removed {number} branches.",
    "At {town} the public was heard in {number} meetings.",
    "Volunteers from {town} gave {number} hours of work.",
    "A new sign at {town} explains how the water is shared.",
    "Complaints from {town} fell to {number}.",
    "The contract for hedge cutting at {town} was given out again.",
    "{surname} and partners advised on the drains of {town}.",
    "The works at {town} were finished {number} days late.",
    "School classes from {town} came {number} times.",
    "At {town} a working group was formed, and dissolved again.",
    "The fence at {town} was moved by {number} centimetres.",
    "We thank the parish of {town} for its patience.",
    "Samples of water taken at {town} gave no cause for concern.",
)


def _annual_report(world: World, year: int) -> Document:
    rng = Random(f"{SEED} annual report {year}")
    blocks: list[Block] = []
    for part in _REPORT_PARTS:
        blocks.append(Heading(part))
        for paragraph in range(4):
            sentences = []
            for sentence in rng.sample(_REPORT_SENTENCES, 10):
                text = sentence.format(
                    town=rng.choice(world.towns).name, number=rng.randrange(3, 320), surname=rng.choice(_SURNAMES)
                )
                sentences.append(text)
            if paragraph == 2 and (year, part) in _REPORT_FACTS:
                sentences.insert(6, _REPORT_FACTS[year, part])
            blocks.append(" ".join(sentences))
        if part == "Museum":
            rows = tuple(
                (month, rng.randrange(80, 2400), rng.randrange(10, 300))
                for month in ("Spring", "Summer", "Autumn", "Winter")
            )
            blocks.append(Table(("Season", "Visitors", "Guided tours"), rows))
        if part == "Fish and birds":
            birds = ("Heron", "Kingfisher", "Coot", "Mute swan", "Reed warbler", "Dabchick")
            rows = tuple((bird, rng.randrange(2, 90)) for bird in birds)
            blocks.append(Table(("Bird", "Pairs"), rows))
    if year == 2024:
        blocks.append(
            "Looking ahead: a tunnel survey is planned, the length of the Dunsilver tunnel being a matter of dispute between two "
            "maps. The swing bridge looks splendid in its new red. Lantern Lock has asked for a deputy keeper, whom we hope to find."
        )
    path = f"annual-reports/annual-report-{year}.pdf"
    return Document(path, f"Annual report {year}", dt.date(year + 1, 3, 1), AUTHORITY, tuple(blocks))


_TERMS = (
    ("Balance beam", "The arm by which a gate is pushed."),
    ("Cut", "Any dug channel; with a capital letter, the Fenmoor Cut."),
    ("Foxmeal", "A red gravel."),
    ("Gongoozler", "Someone who looks at boats and does not help."),
    ("Hollin Arm", "The branch from Garth Hollin to Kestwold."),
    ("Lengthsman", "A person who looks after a stretch of bank."),
    ("Legger", "A man who walks a boat through a tunnel, lying on his back."),
    ("Levy", "A yearly payment of firms; see the mooring levy."),
    ("Lockful", "The water that one passage costs."),
    ("Main line", "The Upper and the Lower Sarn."),
    ("Paddle", "A small sluice in a gate; at Eskerly also a loaf."),
    ("Pound", "The water between two locks."),
    ("Side pond", "A basin that keeps part of a lockful."),
    ("Sixpence", "A float gauge."),
    ("Stop plank", "A board that closes a channel for repair."),
    ("Tail", "The lower end of a lock."),
    ("Windlass", "A crank for paddles."),
    ("Winding hole", "A wide place where boats turn."),
)


def _glossary() -> Document:
    blocks: list[Block] = ["Words of the waterway.", Table(("Word", "Meaning"), _TERMS)]
    return Document("books/glossary.html", "Glossary", dt.date(2022, 1, 10), "Perdita Lunn", tuple(blocks))


def _index(world: World) -> Document:
    """An index of names: mentions without content."""
    rng = Random(f"{SEED} index")
    names = sorted(
        {person.name for person in world.people} | {lock.full_name for lock in world.locks} | {firm.name for firm in world.firms}
        | {boat.name for boat in world.boats}
    )  # fmt: skip
    blocks: list[Block] = ["Numbers are pages of the printed yearbook."]
    letter = ""
    entries: list[str] = []
    for name in names:
        if name[0] != letter:
            if entries:
                blocks.append("; ".join(entries) + ".")
            letter = name[0]
            blocks.append(Heading(letter))
            entries = []
        pages = sorted(rng.sample(range(3, 288), 3))
        entries.append(f"{name} {', '.join(map(str, pages))}")
    blocks.append("; ".join(entries) + ".")
    return Document("books/index-of-names.html", "Index of names", dt.date(2023, 12, 1), "Yearbook", tuple(blocks))


def _contents() -> Document:
    lines = [f"{number}. {name} ........ {9 + 21 * number}" for number, (name, _) in enumerate(CHAPTERS, start=1)]
    lines += [f"Section {number}. {name} ........ {number * 4}" for number, (name, _) in enumerate(SECTIONS, start=1)]
    blocks: list[Block] = ["Contents of the printed history and of the handbook.", "\n\n".join(lines)]
    return Document("books/contents.md", "Contents", dt.date(2023, 3, 1), "Museum", tuple(blocks))


def _bridges(world: World) -> Document:
    rng = Random(f"{SEED} bridges")
    kinds = ("brick arch", "footbridge", "swing bridge", "iron girder", "aqueduct")
    rows = []
    for number in range(1, 53):
        kind = "swing bridge" if number == 31 else rng.choice([each for each in kinds if each != "swing bridge"])
        town = "Inglesay" if number == 31 else rng.choice(world.towns).name
        rows.append((number, town, kind, rng.randrange(1790, 1999), f"{rng.randrange(19, 41) / 10:.1f}"))
    table = Table(("Bridge", "Town", "Kind", "Built", "Headroom (m)"), tuple(rows))
    return Document("registers/bridges.csv", "Bridges", dt.date(2022, 6, 1), AUTHORITY, (table,))
