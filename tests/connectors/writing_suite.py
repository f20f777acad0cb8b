"""What every system must hold that a golden set is planted into: the same questions to each, in the tests' own words."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import pytest

from ringtrue.errors import InputError
from ringtrue.records import Document, GoldenSet, Judgment, Query
from ringtrue.retrieve.connectors.writing import Planted
from ringtrue.run import plant, planted, remove_planted
from ringtrue.run.planting import plantings

TENANT = "acme"
DOCUMENTS = (
    Document("late-arrival", "Guests who come after midnight find the key in a box.", "Late arrival", {"lang": "en"}),
    Document("bicycles", "Bicycles can be rented at the desk for a day.", "Bicycle rental", {"lang": "en"}),
    Document("it's/odd 🏊", 'Ein Wort für das Fundbüro, "quoted" 100% \\ and {text}.', "Fundbüro", {"lang": "de"}),
)
GOLDEN = GoldenSet(
    "tiny", "1.0.0", (Query("q1", "arriving late"),), (Judgment("q1", "late-arrival", 3),), DOCUMENTS, slices=()
)  # fmt: skip
IDS = {f"golden:tiny:{document.doc_id}" for document in DOCUMENTS}
CHANGED = replace(GOLDEN, documents=(replace(DOCUMENTS[0], text="The key is at the petrol station."), *DOCUMENTS[1:]))


class WritingSuite:
    """Subclasses connect to a system that holds records of somebody else's."""

    @pytest.fixture(autouse=True)
    def short_pauses(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ringtrue.run.planting.POLL", 0.05)

    @abstractmethod
    def make(self) -> Any:
        """Return a connector that may write; its ``plant`` stores text, source hash and tenant."""

    @abstractmethod
    def everything(self) -> dict[str, Any]:
        """Return all records of the system by document id, as the system itself says."""

    @abstractmethod
    def marks(self, doc_id: str) -> tuple[str, str]:
        """Return (source hash, tenant) as they are stored."""

    def test_documents_are_planted_found_and_removed_and_nothing_else_changes(self) -> None:
        connector, before = self.make(), self.everything()
        done = plant(connector, GOLDEN, tenant=TENANT)
        assert (done.written, done.unchanged, done.searchable) == (3, 0, 3)
        after = self.everything()
        assert set(after) == {*before, *IDS}
        assert {key: after[key] for key in before} == before
        assert self.marks("golden:tiny:bicycles")[1] == TENANT
        assert len(self.marks("golden:tiny:bicycles")[0]) == 32
        assert "golden:tiny:late-arrival" in [hit.doc_id for hit in connector.search("Late arrival", k=5)]
        assert remove_planted(connector, GOLDEN, tenant=TENANT) == 3
        assert self.everything() == before

    def test_a_second_run_writes_only_what_changed(self) -> None:
        connector = self.make()
        with planted(connector, GOLDEN, tenant=TENANT):
            first = self.marks("golden:tiny:late-arrival")[0]
            again = plant(connector, GOLDEN, tenant=TENANT)
            assert (again.written, again.unchanged) == (0, 3)
            changed = plant(connector, CHANGED, tenant=TENANT)
            assert (changed.written, changed.unchanged) == (1, 2)
            assert self.marks("golden:tiny:late-arrival")[0] != first
            assert len([hit for hit in connector.search("petrol station key") if hit.doc_id in IDS]) <= 3
        assert not IDS & set(self.everything())

    def test_without_plant_it_is_only_read(self) -> None:
        connector, before = replace(self.make(), plant=None), self.everything()
        for action in (plant, remove_planted):
            with pytest.raises(InputError, match=r"is read-only.*plant"):
                action(connector, GOLDEN)
        assert self.everything() == before

    def test_an_error_in_the_block_still_cleans_up(self) -> None:
        connector, before = self.make(), self.everything()
        seen: set[str] = set()

        def fail() -> None:
            seen.update(self.everything())
            raise KeyError("broken")

        with pytest.raises(KeyError, match="broken"), planted(connector, GOLDEN, tenant=TENANT):
            fail()
        assert seen >= IDS
        assert self.everything() == before

    def test_a_document_that_could_never_be_proven_ours_is_not_written(self) -> None:
        connector, before = self.make(), self.everything()
        with pytest.raises(InputError, match="'golden:tiny:bicycles' is not sealed"):
            connector.write([Planted("golden:tiny:bicycles", "Bicycles", "New text", {}, "abc", TENANT)])
        assert self.everything() == before


class HeldSuite(WritingSuite):
    """Systems that can be asked what they hold, and for which tenant."""

    @abstractmethod
    def foreign(self, doc_id: str) -> None:
        """Add a record that nobody planted, under an id that a planted document would have."""

    def test_known_names_the_documents_that_are_there(self) -> None:
        connector = self.make()
        there = next(iter(self.everything()))
        assert connector.known([there, "nobody", "golden:tiny:bicycles"]) == {there}
        assert connector.known([]) == set()

    def test_somebody_elses_record_of_the_same_id_is_neither_replaced_nor_removed(self) -> None:
        connector = self.make()
        self.foreign("golden:tiny:bicycles")
        try:
            before = self.everything()
            with pytest.raises(InputError, match="golden:tiny:bicycles' is there and was not planted"):
                connector.write([one for one in plantings(GOLDEN, tenant=TENANT) if one.id == "golden:tiny:bicycles"])
            assert remove_planted(connector, GOLDEN, tenant=TENANT) == 0
            assert self.everything() == before
        finally:
            self.clear("golden:tiny:bicycles")

    @abstractmethod
    def clear(self, doc_id: str) -> None:
        """Remove a record in the tests' own words."""

    def test_another_tenants_documents_stay(self) -> None:
        connector = self.make()
        with planted(connector, GOLDEN, tenant=TENANT):
            there = self.everything()
            assert remove_planted(connector, GOLDEN, tenant="other") == 0
            assert remove_planted(connector, GOLDEN) == 0
            with pytest.raises(InputError, match="belongs to tenant 'acme'"):
                plant(connector, GOLDEN, tenant="other")
            assert self.everything() == there
