"""Retrieval: documents come in, indexes are kept on disk, a question goes in and hits come out.

May not: measure, judge, print. Retrievers are values written in the measures' grammar (``rrf(bm25, dense)``); every hit says
which channels found it, at which rank, and what each stage made of it. Only ``connectors`` opens network connections.
"""

from typing import TYPE_CHECKING

from ringtrue.exports import on_first_use

if TYPE_CHECKING:
    from ringtrue.retrieve.admission import admitted as admitted
    from ringtrue.retrieve.builders import Collection as Collection, build as build
    from ringtrue.retrieve.documents import (
        DocumentStore as DocumentStore,
        Ingested as Ingested,
        document_hash as document_hash,
    )
    from ringtrue.retrieve.expression import (
        ALIASES as ALIASES,
        ALL as ALL,
        HYBRID as HYBRID,
        Name as Name,
        Source as Source,
        as_expression as as_expression,
        canonical as canonical,
        channels_in as channels_in,
        expression_of as expression_of,
        names_documents as names_documents,
        only as only,
        parts_of as parts_of,
        run_title as run_title,
        same_search as same_search,
        shorten as shorten,
    )
    from ringtrue.retrieve.fuse import Fusion as Fusion
    from ringtrue.retrieve.index import StoredIndex as StoredIndex, indexes_of as indexes_of
    from ringtrue.retrieve.observe import (
        StepResult as StepResult,
        Fused as Fused,
        Listed as Listed,
        Observed as Observed,
        Seen as Seen,
        Stepped as Stepped,
        is_observed as is_observed,
        observing as observing,
    )
    from ringtrue.retrieve.protocol import (
        Retriever as Retriever,
        Scope as Scope,
        answer_all as answer_all,
        as_hits as as_hits,
        as_retriever as as_retriever,
        check_k as check_k,
        from_channel as from_channel,
        plain as plain,
        search_many as search_many,
    )
    from ringtrue.retrieve.stages import Staged as Staged, Step as Step, Threshold as Threshold, Top as Top
    from ringtrue.retrieve.words import words_of as words_of
else:
    __getattr__, __dir__ = on_first_use(__name__)
