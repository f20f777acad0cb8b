#!/bin/sh
# The alert rules are checked with Prometheus' own promtool. Prints where it is: the installed one, or that of Debian's package
# `prometheus`, unpacked into a cache folder without installing anything. Where none can be had it prints nothing, says so loudly,
# and does not fail: everything else can be tested without it.
command -v promtool && exit 0
cache="${XDG_CACHE_HOME:-$HOME/.cache}/ringtrue-promtool"
[ -x "$cache/promtool" ] && echo "$cache/promtool" && exit 0

skipped() {
  printf '\n!!! %s\n!!! The tests of the alert rules with promtool will be SKIPPED.\n\n' "$1" >&2
  exit 0
}

[ "$(uname -s)" = Linux ] && command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1 ||
  skipped "No promtool here, and none can be fetched with apt-get; install Prometheus."
place=$(mktemp -d) || skipped "No promtool here, and no room for one."
trap 'rm -rf "$place"' EXIT
fetch() { (cd "$place" && apt-get -q -o Acquire::http::Timeout=20 -o Acquire::Retries=1 download prometheus >/dev/null 2>&1); }
update() { [ "$(id -u)" = 0 ] && apt-get -q update >/dev/null 2>&1; }
fetch || { update && fetch; } || skipped "promtool could not be fetched: run 'apt-get install prometheus' as root."
dpkg -x "$place"/prometheus_*.deb "$place/package" && mkdir -p "$cache" &&
  mv "$place/package/usr/bin/promtool" "$cache/promtool.$$" && mv "$cache/promtool.$$" "$cache/promtool" ||
  skipped "Debian's package could not be unpacked."
echo "$cache/promtool"
