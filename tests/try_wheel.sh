#!/bin/sh
# Installs a wheel into an empty environment of each supported Python on this machine and tries it there: `try_wheel.sh WHEEL`.
# A version of Python that is missing is named loudly. Fails if a try fails, or if no supported Python was found.
set -eu
wheel=$(realpath "$1")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder" # outside the checkout, so that only the installed package can be imported
tried= missing=
for version in 3.11 3.12 3.13; do
  python=
  for candidate in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python "$HOME/.local/share/uv/python/cpython-$version".*/bin/python; do
    if "$candidate" -c "import sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != '$version')" 2>/dev/null; then
      python=$candidate
      break
    fi
  done
  if [ -z "$python" ]; then
    missing="$missing $version"
    continue
  fi
  echo "== Python $version"
  "$python" -m venv "$version"
  "$version/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel"
  "$version/bin/ringtrue" --help >help.txt
  "$version/bin/ringtrue" self-test >self-test.txt
  run=$("$version/bin/python" -c "import ringtrue.golden as g; print(g.__path__[0])")/sets/hotel/runs/keyword.run
  "$version/bin/ringtrue" score hotel "$run" nDCG@5 R@5
  tried="$tried $version"
done
echo "Tried on Python:$tried"
if [ -n "$missing" ]; then
  printf '\n!!! NOT TRIED, because this machine does not have it: Python%s\n\n' "$missing" >&2
fi
[ -n "$tried" ]
