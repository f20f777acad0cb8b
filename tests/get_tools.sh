#!/bin/sh
# Programs of others that some tests need. `get_tools.sh` fetches all of them; `get_tools.sh NAME` (chromium, promtool, prometheus,
# nginx, hosts) prints where that one is; for the coding agents (hosts) the folder of their programs. An installed one is taken; otherwise Debian's package is: Chromium is installed, with all that
# it needs, the others are unpacked into a cache folder. If one cannot be had, this prints no place, says so loudly, and does not
# fail: everything else can be tested without it.
PATH="$PATH:/usr/sbin"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/ringtrue-tools"
options="-q -o Acquire::http::Timeout=20 -o Acquire::Retries=1"

skipped() { printf '\n!!! %s\n!!! The tests that need %s will be SKIPPED.\n\n' "$2" "$1" >&2; }
debian() { [ "$(uname -s)" = Linux ] && command -v apt-get >/dev/null 2>&1 && command -v dpkg >/dev/null 2>&1; }
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else command -v sudo >/dev/null 2>&1 && sudo -n "$@"; fi
}
update() { as_root apt-get $options update >/dev/null 2>&1; }

get_chromium() {
  for name in chromium chromium-browser google-chrome google-chrome-stable \
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
    command -v "$name" && return
  done
  debian || { skipped Chromium "No Chromium here, and none can be installed with apt-get."; return; }
  echo "Installing Chromium for the tests of pages ..." >&2
  install() { as_root env DEBIAN_FRONTEND=noninteractive apt-get $options -y install --no-install-recommends chromium >/dev/null 2>&1; }
  install || { update && install; }
  command -v chromium || skipped Chromium "Chromium could not be installed: run 'apt-get install chromium' as root."
}

unpacked() { # the program, Debian's package, the program's place in it
  command -v "$1" && return
  [ -x "$cache/$1" ] && echo "$cache/$1" && return
  debian || { skipped "$1" "No $1 here, and none can be fetched with apt-get."; return; }
  place=$(mktemp -d) || return
  fetch() { (cd "$place" && apt-get $options download "$2" >/dev/null 2>&1); }
  fetch "$@" || { update && fetch "$@"; }
  { dpkg -x "$place/$2"_*.deb "$place/package" && mkdir -p "$cache" && mv "$place/package/$3" "$cache/$1.$$" &&
    mv "$cache/$1.$$" "$cache/$1"; } 2>/dev/null
  rm -rf "$place"
  if [ -x "$cache/$1" ]; then echo "$cache/$1"; else skipped "$1" "$1 could not be fetched: run 'apt-get install $2' as root."; fi
}

get_promtool() { unpacked promtool prometheus usr/bin/promtool; }
get_prometheus() { unpacked prometheus prometheus usr/bin/prometheus; }
get_nginx() { unpacked nginx nginx usr/sbin/nginx; }

# Claude Code, Codex and OpenCode in the versions that the recorded payloads come from, fetched with npm. No install script of
# theirs runs by npm; the two that put a program in its place run here with an empty environment.
versions="@anthropic-ai/claude-code@2.1.326 @openai/codex@0.169.0 opencode-ai@1.18.33"
get_hosts() {
  folder="$cache/hosts-$(printf %s "$versions" | cksum | cut -d' ' -f1)"
  [ -f "$folder/ready" ] && echo "$folder/node_modules/.bin" && return
  command -v npm >/dev/null 2>&1 || { skipped "Claude Code, Codex and OpenCode" "No npm here."; return; }
  echo "Installing Claude Code, Codex and OpenCode for the tests of the memory ..." >&2
  mkdir -p "$cache" && place=$(mktemp -d "$cache/hosts.XXXXXX") || return
  alone() { (cd "$place/node_modules/$1" && env -i PATH="$PATH" HOME="$place" node "$2" >/dev/null 2>&1); }
  if npm install --prefix "$place" --ignore-scripts --no-audit --no-fund --silent $versions >/dev/null 2>&1 &&
    alone @anthropic-ai/claude-code install.cjs && alone opencode-ai postinstall.mjs && touch "$place/ready"; then
    rm -rf "$place"/node_modules/opencode-linux-* "$folder"
    mv "$place" "$folder" && echo "$folder/node_modules/.bin" && return
  fi
  rm -rf "$place"
  skipped "Claude Code, Codex and OpenCode" "They could not be fetched with npm."
}

case "${1:-all}" in
all) for tool in chromium promtool prometheus nginx hosts; do "get_$tool" >/dev/null; done ;;
chromium | promtool | prometheus | nginx | hosts) "get_$1" ;;
*) echo "get_tools.sh: there is no tool '$1' here" >&2 && exit 2 ;;
esac
exit 0
