"""Alerts: the rules that ship for Prometheus, and the same rules checked over the history in the store.

In: the file of rules and the stored history. Out: which rules hold, since when, and what to do. Prometheus evaluates the
PromQL of that file; without Prometheus, ``conditions.py`` says in Python what each rule looks for.
"""

from ringtrue.service.alerts.rules import watched as watched
from ringtrue.service.alerts.rules import ShippedRule as ShippedRule, rules_text as rules_text, shipped_rules as shipped_rules
from ringtrue.service.alerts.rules import ActiveAlert as ActiveAlert, RuleState as RuleState, rule_states as rule_states
