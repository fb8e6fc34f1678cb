"""Corrections of the papers: every one names claims that exist, and is found from them."""

import re

from reluflow.theory import PAPERS, claim, corrections, errata_of


def test_every_correction_names_claims_that_exist():
    found = errata_of()
    assert len({one.id for one in found}) == len(found) > 50
    for one in found:
        assert one.paper in PAPERS
        assert one.text.endswith(".")
        assert "\n" not in one.text
        for name in one.claims:
            assert claim(name).paper == one.paper, (one.id, name)
            assert claim(name).id == name, "the id of a claim, not of a statement it also covers"
            assert one in corrections(name)


def test_corrections_come_by_paper():
    assert [one for paper in PAPERS for one in errata_of(paper)] == list(errata_of())
    assert all(re.fullmatch(r"(PL|ML)-E\d+|E-[SL]\d+", one.id) for one in errata_of())


def test_where_both_readings_are_computed_there_is_a_correction():
    for name in ("PL-LA4", "PL-T1p", "SBG-A6.1", "SBG-L1", "LL-A.9", "LL-TA.7", "ML-T1a", "ML-T1d", "ML-L12"):
        assert corrections(name), name
