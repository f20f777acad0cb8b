"""What connectors to vector stores share: the encoder of questions and planted documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ringtrue.errors import InputError
from ringtrue.retrieve.connectors.settings import Text
from ringtrue.retrieve.connectors.writing import Planted, RecordConnector
from ringtrue.retrieve.encode import DEFAULT_MODEL, encoder


@dataclass(frozen=True, kw_only=True)
class VectorConnector(RecordConnector):
    """A system that compares vectors."""

    model: Text = DEFAULT_MODEL
    """The encoder of the question, a name or a folder: the one that made the stored vectors."""

    def query_vector(self, text: str) -> list[float]:
        """Return a question as a vector."""
        found: list[float] = encoder(self.model).encode([text], query=True)[0].tolist()
        return found

    def document_vectors(self, documents: Sequence[Planted]) -> list[list[float]]:
        """Return the vector of each document."""
        found: list[list[float]] = encoder(self.model).encode([document.whole for document in documents]).tolist()
        return found

    def check_size(self, stored: int | None, vector: Sequence[Any]) -> None:
        """Raise InputError if the stored vectors have another number of dimensions; None says that there are none yet."""
        if stored not in (None, len(vector)):
            raise InputError(
                f"{self.name}: the stored vectors have {stored} dimensions and those of model '{self.model}' {len(vector)}; "
                "name the model that made them"
            )
