# RINGTRUE_SOURCE says where pip gets Ringtrue; the extras are those that ringtrue.toml needs.
install() {
  case "$RINGTRUE_SOURCE" in
    "") echo "RINGTRUE_SOURCE is empty: set it to a Git URL, a wheel or a folder that holds Ringtrue" >&2; exit 2 ;;
    ==*) set -- "ringtrue$1$RINGTRUE_SOURCE" ;;
    http*.git|http*.git@*) set -- "ringtrue$1 @ git+$RINGTRUE_SOURCE" ;;
    *://*) set -- "ringtrue$1 @ $RINGTRUE_SOURCE" ;;
    *) set -- "$RINGTRUE_SOURCE$1" ;;
  esac
  python -m pip install --disable-pip-version-check "$1"
}
install ""
extras="$(python -P -m ringtrue ci --extras)"
test -z "$extras" || install "[$extras]"
