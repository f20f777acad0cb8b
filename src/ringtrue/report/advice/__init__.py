"""The rules behind recommendations (P-2), by the evidence they read: a Report comes in, a Recommendation or nothing goes out.

A rule that lacks its evidence (no comparison, no components, no losses) stays silent, and so does one whose evidence could
be noise: advice that comes and goes by chance teaches people to ignore all of it.
"""
