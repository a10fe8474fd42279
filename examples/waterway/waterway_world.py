"""The invented world of the Sarn Waterway: its locks, boats, firms, people, accounts and meetings.

Everything that the documents say and everything that the questions ask comes from here. The same seed makes the same
world on every machine.
"""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from random import Random

SEED = 1788
AUTHORITY = "Sarn Waterway Authority"
TRADE_SCHOOL = "Kestwold Technical School"
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


@dataclass(frozen=True)
class Town:
    name: str
    population: int
    charter: int
    market_day: str
    inn: str
    boatyard: str  # "working", "closed" or "never"
    yard_closed: int
    fact: str


@dataclass(frozen=True)
class Lock:
    number: int
    name: str
    town: str
    district: str
    opened: int
    rise: int  # centimetres
    length: float  # metres
    gates: str  # in January 2023
    drive: str  # "hand", "hydraulic" or "electric"
    keeper: str

    @property
    def full_name(self) -> str:
        return f"{self.name} at {self.town}"


@dataclass(frozen=True)
class Firm:
    name: str
    town: str
    trade: str
    founded: int
    employees: int
    director: str
    former_town: str
    fact: str


@dataclass(frozen=True)
class Boat:
    registration: str
    name: str
    kind: str  # "Cargo boats", "Passenger boats" or "Work boats"
    built: int
    yard: str
    length: float
    engine: str
    home: str
    owner: str
    owner_before: str  # in the register of 2023


@dataclass(frozen=True)
class Person:
    name: str
    role: str
    born: int
    birthplace: str
    training: str
    fact: str
    hobby: str


@dataclass(frozen=True)
class Motion:
    text: str
    votes_for: int
    votes_against: int
    abstained: int

    @property
    def carried(self) -> bool:
        return self.votes_for > self.votes_against


@dataclass(frozen=True)
class Meeting:
    date: dt.date
    present: tuple[str, ...]
    apologies: tuple[str, ...]
    motions: tuple[Motion, ...]


@dataclass(frozen=True)
class Traffic:
    """Boats and tonnes that a lock counted in a month."""

    year: int
    month: int
    lock: str
    up: int
    down: int
    tonnes: int


@dataclass(frozen=True)
class Inspection:
    lock: str
    date: dt.date
    inspector: str
    ratings: tuple[tuple[str, str], ...]  # part and rating


@dataclass(frozen=True)
class Item:
    """A line of quarterly accounts."""

    year: int
    quarter: int
    sheet: str
    name: str
    amount: int


@dataclass(frozen=True)
class Mooring:
    number: str
    town: str
    boat: str
    length: float
    fee: int
    paid: str  # "yes" or "no"


@dataclass(frozen=True)
class Exhibit:
    number: str
    name: str
    found_at: str
    donor: str
    year: int
    room: str


@dataclass(frozen=True)
class Payment:
    date: dt.date
    firm: str
    amount: int
    remark: str


@dataclass(frozen=True)
class World:
    towns: tuple[Town, ...]
    locks: tuple[Lock, ...]
    firms: tuple[Firm, ...]
    boats: tuple[Boat, ...]
    people: tuple[Person, ...]
    meetings: tuple[Meeting, ...]
    traffic: tuple[Traffic, ...]
    inspections: tuple[Inspection, ...]
    items: tuple[Item, ...]
    moorings: tuple[Mooring, ...]
    exhibits: tuple[Exhibit, ...]
    payments: tuple[Payment, ...]

    def lock(self, full_name: str) -> Lock:
        return next(lock for lock in self.locks if lock.full_name == full_name)

    def town(self, name: str) -> Town:
        return next(town for town in self.towns if town.name == name)

    def firm(self, name: str) -> Firm:
        return next(firm for firm in self.firms if firm.name == name)

    def person(self, name: str, role: str = "") -> Person:
        return next(each for each in self.people if each.name == name and role in each.role)


def build_world() -> World:
    """Return the world, the same each time."""
    # One generator per part: a change of one part leaves the others as they were.
    firms = _build_firms(Random(f"{SEED} firms"))
    boats = _build_boats(Random(f"{SEED} boats"))
    return World(
        towns=_build_towns(Random(f"{SEED} towns")),
        locks=_build_locks(Random(f"{SEED} locks")),
        firms=firms,
        boats=boats,
        people=_build_people(Random(f"{SEED} people")),
        meetings=_build_meetings(Random(f"{SEED} meetings")),
        traffic=_build_traffic(Random(f"{SEED} traffic")),
        inspections=_build_inspections(Random(f"{SEED} inspections")),
        items=_build_items(Random(f"{SEED} items")),
        moorings=_build_moorings(Random(f"{SEED} moorings"), boats),
        exhibits=_build_exhibits(Random(f"{SEED} exhibits")),
        payments=_build_payments(Random(f"{SEED} payments"), firms),
    )


# --- towns ---

# Name, inn, state of the boatyard, year in which it closed, and what only its page says.
_TOWNS = (
    ("Brethwick", "The Anchor", "never", 0, "The town clock strikes thirteen at noon, in memory of a bell-ringer who lost count in 1822."),
    ("Callowmere", "The Copper Pike", "closed", 1998, "Its quay is paved with millstones that arrived as ballast from Dunsilver."),
    ("Dunsilver", "The Long Tow", "never", 0, "The waterway runs below the town hill in a brick tunnel; leggers once pushed the boats through it with their feet."),
    ("Eskerly", "The Anchor", "closed", 1974, "Its bakers sell a flat rye loaf called a paddle, which boat people hung from the cabin roof."),
    ("Fenmoor", "The Dry Heron", "working", 0, "Reed cutters from the town supplied thatch for every toll house on the waterway."),
    ("Garth Hollin", "The Hollin Bough", "never", 0, "Each spring the schoolchildren race walnut shells down the overflow channel."),
    ("Harrowdene", "The Oak and Adze", "working", 0, "The parish church keeps a model of the first horse boat in place of a font cover."),
    ("Inglesay", "The Swing Bridge Inn", "working", 0, "The swing bridge was turned by two donkeys until 1961; their names, Prudence and Amos, are cast in its rail."),
    ("Kestwold", "The Plumb Line", "never", 0, "Its observatory sold the exact time to boat captains for a penny."),
    ("Marlbridge", "The Three Measures", "never", 0, "The grain exchange was built without a single nail, by a bet between two carpenters."),
    ("Ottersby", "The Wet Boot", "working", 0, "The town bans cockerels within earshot of the moorings, by a rule of 1867 that is still in force."),
    ("Pellbury", "The Painted Tiller", "closed", 2011, "A sundial of slate on the chapel wall shows the hours until lock closing."),
)  # fmt: skip
_MARKET_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")


def _build_towns(rng: Random) -> tuple[Town, ...]:
    towns = []
    for name, inn, boatyard, closed, fact in _TOWNS:
        town = Town(
            name=name,
            population=rng.randrange(2100, 19800),
            charter=rng.randrange(1204, 1690),
            market_day=rng.choice(_MARKET_DAYS),
            inn=inn,
            boatyard=boatyard,
            yard_closed=closed,
            fact=fact,
        )
        towns.append(town)
    return tuple(towns)


# --- locks ---

_LOCKS = (
    ("Weir Lock", "Brethwick", "Upper Sarn"),
    ("Mill Lock", "Brethwick", "Upper Sarn"),
    ("Bishop's Lock", "Brethwick", "Upper Sarn"),
    ("Tanner's Lock", "Callowmere", "Upper Sarn"),
    ("Cuckoo Lock", "Callowmere", "Upper Sarn"),
    ("Tunnel Lock", "Dunsilver", "Upper Sarn"),
    ("Candle Lock", "Dunsilver", "Upper Sarn"),
    ("Salt Lock", "Eskerly", "Lower Sarn"),
    ("Rope Lock", "Eskerly", "Lower Sarn"),
    ("Lantern Lock", "Harrowdene", "Lower Sarn"),
    ("Adze Lock", "Harrowdene", "Lower Sarn"),
    ("Widow's Lock", "Inglesay", "Lower Sarn"),
    ("Bridge Lock", "Inglesay", "Lower Sarn"),
    ("Holly Lock", "Garth Hollin", "Hollin Arm"),
    ("Staircase Lock", "Garth Hollin", "Hollin Arm"),
    ("Walnut Lock", "Garth Hollin", "Hollin Arm"),
    ("Plumb Lock", "Kestwold", "Hollin Arm"),
    ("Star Lock", "Kestwold", "Hollin Arm"),
    ("Quarry Lock", "Kestwold", "Hollin Arm"),
    ("Grain Lock", "Marlbridge", "Marl Basin"),
    ("Measure Lock", "Marlbridge", "Marl Basin"),
    ("Tiller Lock", "Pellbury", "Marl Basin"),
    ("Chapel Lock", "Pellbury", "Marl Basin"),
    ("Mill Lock", "Ottersby", "Fenmoor Cut"),
    ("Reed Lock", "Fenmoor", "Fenmoor Cut"),
    ("Sluice Lock", "Fenmoor", "Fenmoor Cut"),
)
COUNTED_LOCKS = (
    "Bishop's Lock at Brethwick",
    "Tanner's Lock at Callowmere",
    "Salt Lock at Eskerly",
    "Lantern Lock at Harrowdene",
    "Bridge Lock at Inglesay",
    "Staircase Lock at Garth Hollin",
    "Grain Lock at Marlbridge",
    "Reed Lock at Fenmoor",
)
# Locks whose oak gates were replaced by steel ones after January 2023, with the month.
REPLACED_GATES = {
    "Cuckoo Lock at Callowmere": "October 2023",
    "Rope Lock at Eskerly": "March 2024",
    "Chapel Lock at Pellbury": "November 2024",
}
PLANNED_GATES = "Walnut Lock at Garth Hollin"  # a replacement that was put off to 2026
# Locks whose keeper's cottage took in water in February 2024.
FLOODED = (
    "Tanner's Lock at Callowmere",
    "Salt Lock at Eskerly",
    "Widow's Lock at Inglesay",
    "Measure Lock at Marlbridge",
    "Sluice Lock at Fenmoor",
)
_OAK = (
    "Weir Lock at Brethwick",
    "Cuckoo Lock at Callowmere",
    "Candle Lock at Dunsilver",
    "Rope Lock at Eskerly",
    "Adze Lock at Harrowdene",
    "Holly Lock at Garth Hollin",
    "Walnut Lock at Garth Hollin",
    "Quarry Lock at Kestwold",
    "Tiller Lock at Pellbury",
    "Chapel Lock at Pellbury",
    "Mill Lock at Ottersby",
)
KEEPERS = (
    "Ansel Brock", "Tilda Marrable", "Corin Hathersage", "Wenna Stroud", "Jory Pennick", "Mabel Osgathorpe",
    "Denzil Farrow", "Ruth Calloway", "Osric Tembleton", "Lowenna Birch", "Halward Snee", "Ida Cromarsh",
    "Piers Lavenham", "Greta Oldroyd", "Bastian Thrale", "Nessa Quilter", "Abel Winstane", "Marta Fenwright",
    "Silas Copplestone", "Edda Rowntwist", "Gideon Larkham", "Pernel Ashby-Crook", "Tobit Merridew", "Hester Vane",
    "Ludo Sackville-Orme", "Carys Dunmallet",
)  # fmt: skip


def _build_locks(rng: Random) -> tuple[Lock, ...]:
    rises = rng.sample(range(138, 415), len(_LOCKS))
    years = rng.sample(range(1788, 1847), len(_LOCKS))
    locks = []
    for number, (name, town, district) in enumerate(_LOCKS, start=1):
        full_name = f"{name} at {town}"
        other = rng.choice(("steel", "steel", "greenheart"))
        lock = Lock(
            number=number,
            name=name,
            town=town,
            district=district,
            opened=years[number - 1],
            rise=rises[number - 1],
            length=rng.randrange(210, 410) / 10,
            gates="oak" if full_name in _OAK else other,
            drive=rng.choice(("hand", "hydraulic", "electric", "electric")),
            keeper=KEEPERS[number - 1],
        )
        locks.append(lock)
    return tuple(locks)


# --- firms ---

# Name, town, trade, town before, and what only its page says.
_FIRMS = (
    ("Brannock & Sons", "Eskerly", "ship chandlers", "", "The shop window has shown the same brass diver's helmet since 1931."),
    ("Brannock Timber", "Kestwold", "timber merchants", "Eskerly", "Every plank is stamped with a wren, the mark of the founder's wife."),
    ("Tollick Freight", "Callowmere", "grain carriers", "", "Its boats carry a blue kettle painted below the name."),
    ("Merrow Sand and Gravel", "Marlbridge", "gravel diggers", "Callowmere", "It digs a red gravel that garden builders call foxmeal."),
    ("Oddie's Passenger Boats", "Callowmere", "operators of excursion boats", "Pellbury", "On the first Sunday in June all trips are free for people named Rose."),
    ("Lanyard Ropes", "Harrowdene", "rope makers", "", "Its longest rope walk measures 311 paces and ends in a bakery."),
    ("Vosper Fen Reed", "Fenmoor", "reed cutters and thatchers", "", "Bundles are tied with willow, never with wire, by the founder's will."),
    ("The Copper Pike Brewery", "Callowmere", "brewers", "", "Its winter beer, Ice Stopper, is brewed only after the first frozen lock."),
    ("Quillet Instruments", "Kestwold", "makers of level gauges", "Pellbury", "Its float gauge is named after a cat, Sixpence."),
    ("Pell & Daughters", "Pellbury", "sign painters", "", "They mix a red called Tiller No. 4 from brick dust of the old kilns."),
    ("Hollin Walnut Oil", "Garth Hollin", "oil pressers", "", "The press is driven by water that leaves the lock chamber."),
    ("Ember & Tarn", "Callowmere", "stove makers", "Brethwick", "The cabin stove Model Nine burns peat, coal or old charts, says its plate."),
    ("Sarn Tile Works", "Brethwick", "tile makers", "Callowmere", "Roof tiles of each kiln load carry the paw print of the kiln dog."),
    ("Wherrymen's Bank", "Inglesay", "bankers to boat people", "", "Its first safe was the strongbox of a sunken maltster."),
)  # fmt: skip
_DIRECTORS = (
    "Ilse Brannock", "Hugo Brannock", "Fenella Tollick", "Ramsey Merrow", "Sybil Oddie", "Conrad Lanyard",
    "Tamar Vosper", "Aldous Pike", "Noor Quillet", "Jessamy Pell", "Barnaby Hollin", "Ottilie Ember", "Kester Rudd",
    "Verity Malthouse",
)  # fmt: skip


def _build_firms(rng: Random) -> tuple[Firm, ...]:
    sizes = rng.sample(range(9, 240), len(_FIRMS))
    firms = []
    for (name, town, trade, before, fact), employees, director in zip(_FIRMS, sizes, _DIRECTORS, strict=True):
        firm = Firm(
            name=name,
            town=town,
            trade=trade,
            founded=rng.randrange(1794, 1989),
            employees=employees,
            director=director,
            former_town=before,
            fact=fact,
        )
        firms.append(firm)
    return tuple(firms)


# --- boats ---

KINDS = ("Cargo boats", "Passenger boats", "Work boats")
_BOAT_NAMES = (
    # cargo
    ("Heron", "Constance", "Blue Kettle", "Patience of Eskerly", "Maltster", "Old Tamar", "Rye Queen", "Gravel Duke",
     "Sixpence", "Foxmeal", "Barley Wind", "Nine Bridges", "Lucent", "Perpetua", "Black Swanling", "Ned Harrow",
     "Juniper Sand", "Tidewaiter", "Slow Thunder", "Amos", "Copperhead Lass", "Marigold Toll", "Fen Badger",
     "Tinker's Due", "Isobel Crane", "Weigh Anchor Will", "Lady Marl", "Hodmedod", "Plain Dealing", "Cinderford",
     "Three Measures", "Gannet", "Ebb and Flour", "Kiln Dog", "Stout Hearted", "Rookery", "Second Wife", "Umber",
     "Pike's Bride", "Long Patience"),
    # passenger
    ("Heron", "Painted Lady", "Rose of Callow", "Blue Kettle", "Evening Post", "Quiet Sunday", "Sarn Belle",
     "Dragonfly Mary", "Walnut Shell", "Holiday", "Duchess of Marl", "Lantern Maid", "Prudence", "Swift Return",
     "Summer Bench", "Miss Oddie", "Velvet Sedge", "Cloudberry", "Larkspur", "Tea Clipper", "Sandpiper", "Minnow",
     "Bright Margaret", "Hollin Queen", "Golden Hour", "Moorhen", "Little Regatta", "Merry Widow"),
    # work
    ("Constance", "Mudlark", "Weedeater", "Grab Hopper", "Iron Duckling", "Silt Baron", "Inspector Snee", "Oak Mender",
     "Larkspur", "Pile Driver Pam", "Dredger No. 7", "Ice Plough", "Patch", "Hedgehog", "Gauge Boat", "Tug Ferret",
     "Bollard", "Sluice Runner", "Tar Kettle", "Rivet", "Hopper Two", "Water Beetle", "Fire Float", "Crane Boat Edda"),
)  # fmt: skip
YARDS = ("Harrowdene Yard", "Ottersby Slip", "Fenmoor Dock", "Inglesay Boat Company", "Pellbury Yard")
_OWNERS = (
    ("Tollick Freight", "Merrow Sand and Gravel", "Brannock Timber", "Sarn Tile Works", "The Copper Pike Brewery",
     "Vosper Fen Reed", "Pell & Daughters"),
    ("Oddie's Passenger Boats", "Oddie's Passenger Boats", "The Copper Pike Brewery", "Hollin Walnut Oil",
     "Wherrymen's Bank", "Pell & Daughters"),
    (AUTHORITY, AUTHORITY, "Merrow Sand and Gravel", "Vosper Fen Reed"),
)  # fmt: skip
# Boats whose year or engine their stories ask for.
_BUILT = {
    ("Umber", "Cargo boats"): 1917,
    ("Constance", "Cargo boats"): 1921,
    ("Slow Thunder", "Cargo boats"): 1934,
    ("Lucent", "Cargo boats"): 1926,
    ("Perpetua", "Cargo boats"): 1909,
    ("Weigh Anchor Will", "Cargo boats"): 1930,
    ("Blue Kettle", "Cargo boats"): 1894,
    ("Dragonfly Mary", "Passenger boats"): 1911,
    ("Evening Post", "Passenger boats"): 1938,
    ("Larkspur", "Passenger boats"): 1942,
    ("Sarn Belle", "Passenger boats"): 1906,
    ("Fire Float", "Work boats"): 1931,
    ("Ice Plough", "Work boats"): 1899,
    ("Mudlark", "Work boats"): 1958,
}
_STEAMER = "Sarn Belle"
_ENGINES = ("diesel", "diesel", "electric", "steam", "none (horse-drawn)")


def _build_boats(rng: Random) -> tuple[Boat, ...]:
    boats = []
    towns = [town for town, *_ in _TOWNS]
    for kind, names, owners in zip(KINDS, _BOAT_NAMES, _OWNERS, strict=True):
        for name in names:
            owner = rng.choice(owners)
            changed = rng.random() < 0.17
            others = [each for each in owners if each != owner]
            built = rng.randrange(1891, 2011)
            engine = rng.choice(_ENGINES)
            boat = Boat(
                registration=f"SW-{101 + len(boats)}",
                name=name,
                kind=kind,
                built=_BUILT.get((name, kind), built),
                yard=rng.choice(YARDS),
                length=rng.randrange(82, 284) / 10,
                engine="steam" if name == _STEAMER else engine,
                home=rng.choice(towns),
                owner=owner,
                owner_before=rng.choice(others) if changed else owner,
            )
            boats.append(boat)
    return tuple(boats)


# --- people ---

_OTHER_SCHOOLS = (
    "the Marlbridge Institute",
    "an apprenticeship at Harrowdene Yard",
    "the Nautical College of Inglesay",
)
# Name, role, whether the technical school trained them, and what only their page says.
_PEOPLE = (
    ("Maren Tollick", "hydrologist", True, "She measures rainfall with a christening cup of silver, because it holds exactly a quarter litre."),
    ("Maren Tollick", "ship's cook on the Rose of Callow", False, "Her eel pie won the Golden Ladle of Ottersby in 2017."),
    ("Ivo Strangeways", "chief engineer", True, "He lost two fingertips to a paddle gear at the age of nineteen and plays the concertina regardless."),
    ("Perdita Lunn", "curator of the waterway museum", False, "She found the missing tiller of the Perpetua under a chicken house."),
    ("Cosmo Hartnoll", "dredging foreman", True, "He keeps a jar of mud from each reach he has dredged, 88 by now."),
    ("Beatrix Swale", "toll clerk", False, "She can tell any boat's tonnage by the sound of its wash, and was tested on it by the Board."),
    ("Ambrose Tiddy", "lengthsman on the Hollin Arm", False, "He planted 412 alders along the towpath in a single winter."),
    ("Linnet Ashdown", "boat builder at Ottersby Slip", True, "Her first boat, built at sixteen, was a coffin for the harbour master, at his own request."),
    ("Rufus Penhaligon Gray", "diver", False, "He recovered a church organ pipe by pipe from the Marl Basin."),
    ("Oriel Tansley", "water bailiff", False, "She once arrested a swan for theft of a wedding cake, and the charge was entered in the book."),
    ("Jonas Wick", "electrician", True, "He lit the Dunsilver tunnel with 61 lamps salvaged from a circus."),
    ("Sabina Crewe", "secretary of the Board", False, "She takes the minutes in a shorthand of her grandmother's that nobody else can read."),
    ("Matthias Orme", "surveyor of bridges", True, "He measures arches with a fishing rod marked in red wool."),
    ("Delphine Marchbanks", "harbour pilot at Inglesay", False, "She steers by a compass taken from a balloon that fell at Kestwold."),
    ("Torquil Bane", "blacksmith", True, "He forged the weathercock of Pellbury chapel from forty worn-out mooring rings."),
    ("Winifred Stagg", "ferrywoman at Fenmoor", False, "She has crossed the Cut 200,000 times by her own tally, kept in notches on an oar."),
    ("Lucian Frome", "gauge reader", True, "He is colour-blind and reads the levels by touch."),
    ("Agatha Pym-Holloway", "chair of the Board", False, "She was a trapeze artist until a fall at Marlbridge in 1989."),
    ("Barnabas Crake", "stable master of the horse boats", False, "His mare Treacle holds the record for the towpath to Eskerly: 3 hours 12 minutes."),
    ("Zillah Northover", "clerk of works", True, "She proved the leak at Quarry Lock with a bottle of beetroot juice."),
    ("Emeric Vail", "painter of boat signs", False, "He paints every letter from right to left, as he learned from a mirror maker."),
    ("Honor Blackadder", "weed cutter", False, "She invented a rake with a hinge, which the Authority bought for a barrel of cider."),
    ("Crispin Dole", "night watchman at Grain Lock", False, "He wrote a dictionary of 900 boat people's curses while on duty."),
    ("Yolande Farthing", "auditor", True, "She found an error of one penny in the accounts of 1911 and had it framed."),
    ("Piran Goss", "teacher at the boat school", False, "He teaches the alphabet with signal flags that his pupils sew themselves."),
    ("Thea Ravensdale", "chart maker", True, "Her charts show every blackberry bush within reach of a deck."),
)  # fmt: skip
_HOBBIES = (
    "keeps bees", "sings in the lock choir", "collects lead seals of grain sacks", "plays chess by post",
    "grows prize leeks", "restores clocks", "paints kingfishers", "bakes for the market", "breeds whippets",
    "walks the towpath at night", "carves spoons", "repairs accordions",
)  # fmt: skip


def _build_people(rng: Random) -> tuple[Person, ...]:
    towns = [town for town, *_ in _TOWNS]
    people = []
    for name, role, trained, fact in _PEOPLE:
        person = Person(
            name=name,
            role=role,
            born=rng.randrange(1951, 1994),
            birthplace=rng.choice(towns),
            training=TRADE_SCHOOL if trained else rng.choice(_OTHER_SCHOOLS),
            fact=fact,
            hobby=rng.choice(_HOBBIES),
        )
        people.append(person)
    for keeper in KEEPERS:
        person = Person(
            name=keeper,
            role="lock keeper",
            born=rng.randrange(1951, 1999),
            birthplace=rng.choice(towns),
            training=rng.choice((TRADE_SCHOOL, *_OTHER_SCHOOLS)),
            fact="",
            hobby=rng.choice(_HOBBIES),
        )
        people.append(person)
    return tuple(people)


# --- the Board ---

BOARD = (
    "Agatha Pym-Holloway", "Lionel Cutforth", "Maud Sextant", "Everard Nunn", "Philippa Dray", "Hamish Oakapple",
    "Zora Wintle", "Benedict Rowe", "Cecily Thornback",
)  # fmt: skip
_MOTIONS = (
    "to buy a second weed cutter", "to raise the winter closure to six weeks", "to plant alders at the Kestwold reservoir",
    "to allow night passage at Bridge Lock", "to lend the horse boat to the museum", "to renew the lease of the toll house at Eskerly",
    "to set up a fund for boat people's children", "to paint lock beams in one colour", "to let the Inglesay crane to a firm",
    "to stop the sale of ice from the reservoir", "to open the Dunsilver tunnel to canoes", "to give lengthsmen bicycles",
    "to move the Board's seat to Marlbridge", "to publish levels every hour", "to replace stop planks at Fenmoor",
    "to admit dogs to the museum", "to sign the reed-cutting treaty with Fenmoor parish", "to buy radios for keepers",
    "to end the discount for horse boats", "to name the new footbridge after Treacle", "to insure the Perpetua's tiller",
    "to hold the lock choir festival at Pellbury", "to hire a second auditor", "to dredge the Marl Basin at night",
    "to charge for drinking water at moorings", "to restore the clock of Tunnel Lock", "to fine anglers on gate beams",
    "to buy the boat school a piano", "to try solar lamps on the towpath", "to sell the iron barge Umber's sister hull",
    "to write off the debt of the ferry", "to lengthen the landing stage at Star Lock", "to ban wash above Cuckoo Lock",
    "to translate the bye-laws into Spanish", "to build a fish pass at Weir Lock", "to return the Brethwick bell",
    "to extend the season of the swing bridge", "to appoint an apprentice surveyor", "to ask for a loan from Wherrymen's Bank",
    "to keep the paper register of boats", "to cut the members' travel allowance", "to give the keepers' cottages new stoves",
    "to rent a warehouse for stop planks", "to hold one meeting a year on a boat", "to close Reed Lock on Sundays",
    "to record the toll clerks' songs", "to mark the depth at Quarry Lock in blue", "to end paper tickets",
    "to buy the chapel meadow", "to order a bronze of the legger", "to fence the overflow at Garth Hollin",
    "to allow swimming at Measure Lock", "to move the boat market to May", "to take part in the Day of Small Harbours",
    "to pay keepers for clearing ice", "to rebuild the weigh house", "to make the towpath at Ottersby one-way",
    "to drain the Candle Lock pound", "to buy two tarpaulins", "to number the bollards", "to store oak at Harrowdene",
    "to shorten the lunch closure", "to make a film about leggers", "to collect boat people's recipes",
)  # fmt: skip
MEETING_DATES = (
    dt.date(2023, 1, 17), dt.date(2023, 3, 7), dt.date(2023, 4, 25), dt.date(2023, 6, 6),
    dt.date(2023, 7, 18), dt.date(2023, 9, 5), dt.date(2023, 10, 24), dt.date(2023, 12, 5),
    dt.date(2024, 1, 16), dt.date(2024, 3, 5), dt.date(2024, 4, 23), dt.date(2024, 6, 4),
    dt.date(2024, 7, 16), dt.date(2024, 9, 3), dt.date(2024, 10, 22), dt.date(2024, 12, 3),
)  # fmt: skip
MOST_ABSENT = "Hamish Oakapple"


def _build_meetings(rng: Random) -> tuple[Meeting, ...]:
    motions = rng.sample(_MOTIONS, len(_MOTIONS))
    meetings = []
    for place, date in enumerate(MEETING_DATES):
        absent = set()
        for member in BOARD[1:]:
            chance = 0.44 if member == MOST_ABSENT else 0.14
            if rng.random() < chance:
                absent.add(member)
        present = tuple(member for member in BOARD if member not in absent)
        decided = []
        for text in motions[4 * place : 4 * place + 4]:
            lost = rng.random() < 0.3
            abstained = rng.randrange(0, 2)
            votes = len(present) - abstained
            fewer = rng.randrange(0, (votes - 1) // 2 + 1)
            more = votes - fewer
            decided.append(Motion(text, fewer if lost else more, more if lost else fewer, abstained))
        apologies = tuple(member for member in BOARD if member in absent)
        meetings.append(Meeting(date, present, apologies, tuple(decided)))
    return tuple(meetings)


# --- monthly traffic ---

# A figure that the report of the next month corrects: year, month, lock, tonnes as first printed.
MISPRINT = (2024, 4, "Salt Lock at Eskerly", 1947)


def _build_traffic(rng: Random) -> tuple[Traffic, ...]:
    rows = []
    season = (4, 4, 7, 10, 13, 15, 17, 16, 12, 9, 6, 4)
    for year in (2023, 2024):
        for month in range(1, 13):
            for lock in COUNTED_LOCKS:
                boats = season[month - 1] * rng.randrange(9, 19)
                up = boats * rng.randrange(45, 56) // 100
                rows.append(Traffic(year, month, lock, up, boats - up, boats * rng.randrange(5, 14)))
    return tuple(rows)


# --- inspections ---

PARTS = ("Upper gate", "Lower gate", "Paddles", "Chamber walls", "Landing stage")
INSPECTORS = ("Zillah Northover", "Matthias Orme", "Ivo Strangeways")


def _build_inspections(rng: Random) -> tuple[Inspection, ...]:
    names = [f"{name} at {town}" for name, town, _ in _LOCKS]
    chosen = sorted(rng.sample(range(len(names)), 18))
    inspections = []
    for place, number in enumerate(chosen):
        ratings = []
        poor_lock = rng.random() < 0.4
        for part in PARTS:
            poor = poor_lock and rng.random() < 0.35
            ratings.append((part, "poor" if poor else rng.choice(("good", "good", "fair"))))
        date = dt.date(2024, 1 + place * 11 // 18, rng.randrange(3, 28))
        inspections.append(Inspection(names[number], date, rng.choice(INSPECTORS), tuple(ratings)))
    return tuple(inspections)


# --- accounts ---

_INCOME = (
    "Lock tolls",
    "Mooring fees",
    "Museum tickets",
    "Fishing permits",
    "Rents of cottages",
    "Sale of reed",
    "Fines",
)
_EXPENSES = (
    "Wages", "Dredging hire", "Oak and steel", "Lamp oil and current", "Fodder for horses", "Insurance", "Uniforms",
    "Paint", "Printing",
)  # fmt: skip
_CAPITAL = ("New gates", "Towpath works", "Pumping station", "Radio masts")
# An item that the accounts of one quarter list among the capital works.
MOVED_ITEM = (2024, 3, "Dredging hire", "Capital works")


def _build_items(rng: Random) -> tuple[Item, ...]:
    items = []
    for year in (2023, 2024):
        for quarter in range(1, 5):
            for sheet, names in (("Income", _INCOME), ("Expenses", _EXPENSES), ("Capital works", _CAPITAL)):
                for name in names:
                    amount = rng.randrange(900, 48000)
                    moved = (year, quarter, name) == MOVED_ITEM[:3]
                    items.append(Item(year, quarter, MOVED_ITEM[3] if moved else sheet, name, amount))
    return tuple(items)


# --- moorings ---


def _build_moorings(rng: Random, boats: tuple[Boat, ...]) -> tuple[Mooring, ...]:
    moorings = []
    towns = [town for town, *_ in _TOWNS]
    places = [(boat.name, boat.length) for boat in boats] + [("(vacant)", 0.0)] * 25
    rng.shuffle(places)
    for place, (boat, length) in enumerate(places, start=1):
        mooring = Mooring(
            number=f"M{place:03}",
            town=rng.choice(towns),
            boat=boat,
            length=length,
            fee=rng.randrange(18, 96) * 5 if length else 0,
            paid="" if not length else rng.choice(("yes", "yes", "yes", "no")),
        )
        moorings.append(mooring)
    return tuple(moorings)


# --- the museum ---

_THINGS = (
    "tiller", "horse brass", "water can", "cabin lamp", "toll token", "lead seal", "windlass", "ice saw", "legging board",
    "rope fender", "gauge rod", "stove plate", "bargeman's belt", "ticket punch", "signal flag", "mooring pin",
    "cargo hook", "name board", "copper kettle", "tally stick",
)  # fmt: skip
_ADJECTIVES = ("Small", "Painted", "Broken", "Oak", "Brass", "Burnt", "Carved", "Children's", "Repaired", "Tarred")
DONORS = (
    "Ilse Brannock", "Barnabas Crake", "the parish of Ottersby", "Perdita Lunn", "the Oddie family", "Torquil Bane",
    "an unknown giver", "the widow of Elias Stroud", "Wherrymen's Bank", "the Copper Pike Brewery",
)  # fmt: skip
_LIVING_DONORS = ("Ilse Brannock", "Barnabas Crake", "Perdita Lunn", "Torquil Bane")
_ROOMS = ("Toll Room", "Horse Room", "Ice Room", "Cabin Room", "Store")


def _build_exhibits(rng: Random) -> tuple[Exhibit, ...]:
    pairs = [f"{adjective} {thing}" for adjective in _ADJECTIVES for thing in _THINGS]
    names = rng.sample(pairs, 150)
    exhibits = []
    for place, name in enumerate(names, start=1):
        lock, town, _ = rng.choice(_LOCKS)
        donor = rng.choices(DONORS, weights=(9, 9, 9, 9, 9, 9, 30, 5, 9, 9))[0]
        first_year = 1985 if donor in _LIVING_DONORS else 1926
        exhibit = Exhibit(
            number=f"WM-{place:04}",
            name=name,
            found_at=f"{lock} at {town}",
            donor=donor,
            year=rng.randrange(first_year, 2024),
            room=rng.choice(_ROOMS),
        )
        exhibits.append(exhibit)
    return tuple(exhibits)


# --- the mooring levy ---

NEVER_PAID = ("Ember & Tarn", "Quillet Instruments")
PAYMENT_RETURNED = ("Vosper Fen Reed", "Lanyard Ropes")
PAID_AGAIN = "Lanyard Ropes"
# Number of employees up to which a rate holds, and the crowns per employee.
LEVY_RATES = ((50, 9), (100, 8), (200, 7), (400, 6))
RETURNED = "returned by the bank"


def _build_payments(rng: Random, firms: tuple[Firm, ...]) -> tuple[Payment, ...]:
    payments = []
    for firm in firms:
        if firm.name in NEVER_PAID:
            continue
        rate = next(rate for employees, rate in LEVY_RATES if firm.employees <= employees)
        amount = firm.employees * rate
        date = dt.date(2024, rng.randrange(2, 7), rng.randrange(1, 28))
        remark = rng.choice(("", "", "by cheque", "in coin"))
        if firm.name in PAYMENT_RETURNED:
            remark = RETURNED
        payments.append(Payment(date, firm.name, amount, remark))
        if firm.name == PAID_AGAIN:
            again = date + dt.timedelta(days=41)
            payments.append(Payment(again, firm.name, amount, "paid again after the return"))
    return tuple(sorted(payments, key=lambda payment: payment.date))
