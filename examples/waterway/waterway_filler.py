"""Short documents about other waterways: the same kinds of texts with other names and other facts.

They make look-ups hard: what is asked for must be found among thousands of documents that read like it. No name of the
archive's own world is in them.
"""

from __future__ import annotations

from random import Random

from waterway_world import SEED

_STARTS = "Ab Bra Cor Dal Ev Fal Gri Hul Ister Jor Kal Lor Mun Nes Orl Pra Rul Sem Tur Ulf Vant Wex Yar Zol".split()
_MIDDLES = "a e i o u an en in or ul am est ind olm".split()
_PLACE_ENDS = "sund holt wick strand moor gate quay minster bach rode stead thwaite".split()
_NAME_ENDS = "sen ley rick by dahl mont ward stone kin ett ridge shaw".split()
_GIVEN = (
    "Adra Beno Calla Dorian Elka Faro Gisela Hanno Ilario Jutta Kolja Ludmila Milo Nerea Otmar Petra Quint Rosalba Stellan "
    "Tiago Ursel Viggo Wanda Xenia Yorick Zdena Amadeo Brisa Clovis Dagny Ebba Fritjof Gaspar Halina Imre Joana"
).split()
_WATERS = "Canal Navigation Cut Drain Reach Level Arm Branch".split()
_ROLES = (
    "lock keeper", "dyke reeve", "ferryman", "boat painter", "surveyor", "toll clerk", "diver", "ship's cook", "auditor",
    "watchman", "engineer", "curator", "pilot", "weed cutter", "rope maker", "teacher", "blacksmith", "gauge reader",
)  # fmt: skip
_TRADES = (
    "tile makers", "chandlers", "brewers", "oil pressers", "gravel diggers", "rope makers", "carriers", "stove makers",
    "sign painters", "bankers", "timber merchants", "operators of excursion boats", "clock makers", "millers",
)  # fmt: skip
_BOATS = (
    "Otter Tern Osprey Juno Fortuna Penelope Hazelnut Candour Vigil Bramble Comet Gravy Thistle Pilgrim Saffron Cobalt "
    "Magpie Quince Teasel Burdock Linden Almond Rowan Bittern Curlew Plover Sorrel Tansy Yarrow Betony"
).split()
_BOAT_WORDS = (
    "Grand Lucky Young Faithful Proud Silver Hasty Northern Gentle Crooked Wandering Thrifty Noble Idle".split()
)
_THINGS = (
    "a pewter spoon", "a broken fiddle", "a weathered saddle", "a crate of lemons", "a bronze inkwell", "a parrot cage",
    "a pair of skates", "a tin whistle", "a barber's chair", "a globe without Africa", "a box of buttons", "a hat stand",
    "a carved walking stick", "a jar of marbles", "a torn flag", "a set of dominoes", "a sledge", "a drum", "a font of type",
    "a school bench", "a mangle", "a churn", "a rocking horse", "a barometer", "a telescope", "a sack of chestnuts",
)  # fmt: skip
_DEEDS = (
    "found {thing} under the floor of the pump house", "won {thing} in a bet about the depth of the water",
    "measures the depth with {thing}", "keeps {thing} on the cabin roof for luck", "was paid with {thing} for a night's work",
    "once pulled {thing} out of the sluice", "paints a picture of {thing} every winter",
    "repaired the gate with parts of {thing}", "hangs {thing} at the door when the ice holds",
    "swam across the basin with {thing} in one hand", "was given {thing} by the boat people at the farewell",
    "inherited {thing} from a smuggler", "sold {thing} to a museum and bought it back", "wrote a song about {thing}",
    "hid {thing} from the excise man for nine years", "built a lamp out of {thing}",
)  # fmt: skip
_BOAT_DEEDS = (
    "carried {thing} for a bishop, who forgot to collect it", "sank with {thing} on board and was raised in a week",
    "won a race because the others stopped to look at {thing}", "has a figurehead that holds {thing}",
    "was built from the planks of a theatre and still shows {thing} in the hold", "served as a library, then as a chapel",
    "was sold for {thing} in a year without trade", "collided with a floating {plain}", "served as a post office in the strike",
    "brought {thing} from the fair and a fever with it",
)  # fmt: skip
_ASIDES = (
    "The water was low that year.", "The towpath is muddy from November on.", "Nobody wrote down why.",
    "The ledger of that time is lost.", "Old people still tell it in the evening.", "The rest is known from a letter.",
    "It was a market day.", "The weather was fair.", "A photograph exists.", "The bill was never paid.",
    "The bridge there has three arches.", "Ducks are said to be to blame.",
)  # fmt: skip


def filler_records(count: int) -> list[dict[str, str]]:
    """Return so many short documents as records with `id`, `title` and `text`."""
    rng = Random(f"{SEED} filler")
    kinds = (_person, _boat, _firm, _town, _lock, _letter, _object, _incident)
    records = []
    for number in range(1, count + 1):
        title, text = kinds[number % len(kinds)](rng)
        records.append({"id": f"filler-{number:05}", "title": title, "text": text})
    return records


def _place(rng: Random) -> str:
    return rng.choice(_STARTS) + rng.choice(_MIDDLES) + rng.choice(_PLACE_ENDS)


def _surname(rng: Random) -> str:
    return rng.choice(_STARTS) + rng.choice(_MIDDLES) + rng.choice(_NAME_ENDS)


def _person_name(rng: Random) -> str:
    return f"{rng.choice(_GIVEN)} {_surname(rng)}"


def _water(rng: Random) -> str:
    return f"{_place(rng)} {rng.choice(_WATERS)}"


def _asides(rng: Random, count: int) -> str:
    return " ".join(rng.sample(_ASIDES, count))


def _deed(rng: Random, deeds: tuple[str, ...]) -> str:
    thing = rng.choice(_THINGS)
    return rng.choice(deeds).format(thing=thing, plain=thing.removeprefix("a "))


def _person(rng: Random) -> tuple[str, str]:
    name = _person_name(rng)
    role = rng.choice(_ROLES)
    text = (
        f"{name}, born at {_place(rng)} in {rng.randrange(1880, 1995)}, is {role} on the {_water(rng)}. {_asides(rng, 1)} "
        f"{name.split()[1]} learned the trade at {_place(rng)} and {_deed(rng, _DEEDS)}. {_asides(rng, 2)}"
    )
    return f"{name}, {role}", text


def _boat(rng: Random) -> tuple[str, str]:
    name = f"{rng.choice(_BOAT_WORDS)} {rng.choice(_BOATS)}"
    number = f"{rng.choice('ABCDEFGHJKLM')}{rng.choice('NPQRTUVX')}-{rng.randrange(100, 999)}"
    text = (
        f"The {name} ({number}) is used on the {_water(rng)}. She left the slip at {_place(rng)} in {rng.randrange(1880, 2010)} "
        f"and measures {rng.randrange(90, 280) / 10} m. She {_deed(rng, _BOAT_DEEDS)}. {_asides(rng, 2)} "
        f"Her skipper is {_person_name(rng)}."
    )
    return f"{name} ({number})", text


def _firm(rng: Random) -> tuple[str, str]:
    name = f"{_surname(rng)} & {rng.choice(('Sons', 'Daughters', 'Company', 'Brothers', 'Partners'))}"
    text = (
        f"{name}, {rng.choice(_TRADES)}, have their works at {_place(rng)} on the {_water(rng)}. The house was founded in "
        f"{rng.randrange(1780, 1990)}. {rng.randrange(4, 400)} people work there. The shop window shows {rng.choice(_THINGS)}. "
        f"{_asides(rng, 2)} At its head stands {_person_name(rng)}, who {_deed(rng, _DEEDS)}."
    )
    return name, text


def _town(rng: Random) -> tuple[str, str]:
    name = _place(rng)
    text = (
        f"{name} lies on the {_water(rng)} and received its charter in {rng.randrange(1200, 1700)}. "
        f"Boat people meet at the {rng.choice(_BOAT_WORDS)} {rng.choice(_BOATS)}. {_asides(rng, 1)} In the town hall hangs "
        f"{rng.choice(_THINGS)}, left by a skipper named {_surname(rng)}, who {_deed(rng, _DEEDS)}. {_asides(rng, 1)}"
    )
    return f"The town of {name}", text


def _lock(rng: Random) -> tuple[str, str]:
    name = f"{_surname(rng)}'s Lock at {_place(rng)}"
    text = (
        f"{name} lies on the {_water(rng)}. Between the two water levels lie {rng.randrange(90, 420)} cm. The gates are of "
        f"{rng.choice(('oak', 'steel', 'elm', 'larch'))}. The keeper, {_person_name(rng)}, {_deed(rng, _DEEDS)}. {_asides(rng, 3)}"
    )
    return name, text


def _letter(rng: Random) -> tuple[str, str]:
    sender = _person_name(rng)
    text = (
        f"Dear {rng.choice(_GIVEN)}, the water at {_place(rng)} is high and the boats wait. My cousin {_deed(rng, _DEEDS)}. "
        f"{_asides(rng, 2)} We passed {rng.randrange(3, 40)} locks of the {_water(rng)} in {rng.randrange(2, 12)} days. "
        f"Yours, {sender}"
    )
    return f"Letter of {sender}", text


def _object(rng: Random) -> tuple[str, str]:
    thing = rng.choice(_THINGS)
    place = _place(rng)
    text = (
        f"The collection of {place} shows {thing}, found at a lock of the {_water(rng)} in {rng.randrange(1870, 2015)}. "
        f"It was given by {_person_name(rng)}, who {_deed(rng, _DEEDS)}. {_asides(rng, 2)}"
    )
    return f"{thing[2:].capitalize()}, collection of {place}", text


def _incident(rng: Random) -> tuple[str, str]:
    place = _place(rng)
    year = rng.randrange(1820, 2020)
    text = (
        f"In {year} the {_water(rng)} at {place} was closed for {rng.randrange(2, 60)} days. A boat named {rng.choice(_BOAT_WORDS)} "
        f"{rng.choice(_BOATS)} {_deed(rng, _BOAT_DEEDS)}. {_asides(rng, 2)} {_person_name(rng)}, {rng.choice(_ROLES)}, "
        f"{_deed(rng, _DEEDS)}."
    )
    return f"Closure at {place}, {year}", text
