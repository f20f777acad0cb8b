"""The HTML page in parts: both sides of a report, the tables and charts, and the data that its script reads.

The template, ``theme.css`` (colours and type, the same for every page of Ringtrue), ``report.css`` and ``report.js`` lie
beside them. Text of documents and queries passes through Jinja's escaping or is embedded as JSON.
"""
