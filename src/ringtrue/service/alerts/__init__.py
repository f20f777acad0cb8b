"""Alerts: the rules that ship for Prometheus, and the same rules checked over the history in the store.

In: the file of rules and the stored history. Out: which rules hold, since when, and what to do. Prometheus evaluates the
PromQL of that file; without Prometheus, ``CONDITIONS`` says in Python what each rule looks for.
"""

from ringtrue.service.alerts.rules import ShippedRule as ShippedRule, rule_states as rule_states
from ringtrue.service.alerts.rules import rules_text as rules_text, shipped_rules as shipped_rules, watched as watched
