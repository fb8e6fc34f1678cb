"""Which theorem is named for what a run did: it is data of the claims, and the report names none by itself."""

import re
from pathlib import Path

import reluflow.report
from reluflow.theory import claims, naming


def test_the_statements_that_people_come_for():
    assert naming.theorems() == (
        *("PL-T1", "PL-T1'", "PL-T1p", "PL-C1", "ML-T1a", "ML-T1a'", "ML-CERT", "ML-T1b", "ML-T1d", "ML-POST"),
        *("SBG-T4.1", "SBG-T5.1", "SBG-T6.1", "SBG-T6.2"),
        *("LL-T3.1", "LL-TH.2", "LL-T4.2", "LL-T4.3", "LL-T5.5", "LL-TA.7", "LL-TA.10", "LL-T6.2"),
    )


def test_places_are_distinct_within_a_paper():
    for paper in ("PL", "ML", "SBG", "LL"):
        places = [one.role.place for one in claims(paper) if one.role.place]
        assert sorted(places) == list(range(1, len(places) + 1))


def test_of_several_theorems_on_one_end_the_first_is_named():
    order = list(naming.endings())
    assert order.index("PL-T1'") < order.index("LL-TH.2") < order.index("LL-T4.3") < order.index("LL-T5.5")
    assert order.index("LL-TA.7") < order.index("LL-G.9")
    assert {one.role.nearest_for for one in naming.endings().values()} == {"", "frozen", "ReLU", "leaky"}


def test_what_a_claim_is_named_for_fits_what_it_does():
    for one in claims():
        role, status = one.role, one.status()
        assert not (role.about or role.stall) or "predicted" in status, one.id
        assert not role.largest or "bounded" in status, one.id
        assert not role.nearest_for or role.about, one.id


def test_no_claim_is_named_in_the_report():
    known = {name for one in claims() for name in (one.id, *one.also)}
    pattern = re.compile(r"\b(?:PL|ML|SBG|LL|C)-[A-Z][\w.']*")
    for file in Path(reluflow.report.__file__).parent.rglob("*.py"):
        found = set(pattern.findall(file.read_text(encoding="utf-8")))
        assert not {name for name in found if name.rstrip(".") in known}, file.name
