"""Alerts: the rules that ship for Prometheus, and an evaluator of these very rules over the history in the store (V-2).

Comes in: the rules' file and stored history. Goes out: which rules hold, since when, and what to do. May not: know more of
PromQL than the shipped rules use; anything else is refused by name.
"""

from ringtrue.service.alerts.over_history import Alert, RuleState, rule_states
from ringtrue.service.alerts.rules import Rule, read_rules, rules_text, shipped_rules, watched

__all__ = ["Alert", "Rule", "RuleState", "read_rules", "rule_states", "rules_text", "shipped_rules", "watched"]
