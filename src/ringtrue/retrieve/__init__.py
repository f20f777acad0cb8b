"""Retrieval: documents come in, indexes are kept on disk, a question goes in and hits come out.

May not: measure, judge, print. Retrievers are values written in the measures' grammar (``rrf(bm25, dense)``); every hit says
which channels found it, at which rank, and what each stage made of it. Only ``connectors`` opens network connections.
"""

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.retrieve.collection import Collection as Collection, Ingested as Ingested
    from ringtrue.retrieve.expression import (
        as_expression as as_expression,
        build as build,
        canonical as canonical,
        expression_of as expression_of,
        key as key,
        names_documents as names_documents,
        parts_of as parts_of,
        same_search as same_search,
    )
    from ringtrue.retrieve.fuse import Fusion as Fusion
    from ringtrue.retrieve.kept import Kept as Kept, indexes_of as indexes_of
    from ringtrue.retrieve.observe import (
        Done as Done,
        Fused as Fused,
        Listed as Listed,
        Observed as Observed,
        Seen as Seen,
        Stepped as Stepped,
        observing as observing,
    )
    from ringtrue.retrieve.pipeline import Staged as Staged
    from ringtrue.retrieve.protocol import Retriever as Retriever, as_retriever as as_retriever, search_many as search_many
else:
    __getattr__, __dir__ = on_first_use(__name__)
