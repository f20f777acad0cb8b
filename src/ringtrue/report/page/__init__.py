"""The HTML page in parts: what it says (``words``), its tables (``sections``), the data its script reads (``embedded``).

The template, ``theme.css`` (colours and type, the same for every page of Ringtrue), ``report.css`` and ``report.js`` lie
beside them. Everything that documents or queries brought along passes through Jinja's escaping or is embedded as JSON.
"""
