#!/bin/sh
# Pages are tested in a real browser. Installs Debian's Chromium where that is possible without asking anybody, and says
# loudly that those tests will be skipped where it is not. Never fails: everything else can be tested without it.
for name in chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
[ -x "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" ] && exit 0

skipped() {
  printf '\n!!! %s\n!!! The tests of the HTML report in a browser will be SKIPPED.\n\n' "$1" >&2
  exit 0
}

[ "$(uname -s)" = Linux ] && command -v apt-get >/dev/null 2>&1 || skipped "No Chromium here, and none can be installed with apt-get."
if [ "$(id -u)" = 0 ]; then
  as_root=
elif command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
  as_root="sudo -n"
else
  skipped "No Chromium here, and no right to install it: run 'apt-get install chromium' as root."
fi

echo "Installing Chromium for the tests of pages ..."
get() { $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@" >/dev/null 2>&1; }
get install --no-install-recommends chromium || { get update && get install --no-install-recommends chromium; } ||
  skipped "Chromium could not be installed with apt-get."
command -v chromium >/dev/null 2>&1 || skipped "apt-get installed no command named chromium (a snap, perhaps)."
